// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include <array>
#include <charconv>

namespace reef::ir {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

// Indexed by the value of DataType.
constexpr std::array<TypeRow, 23> kTypes = {
    {{"float32", 32},  {"float16", 16}, {"int32", 32},     {"uint8", 8},         {"int64", 64},     {"string", 0},
     {"bool", 8},      {"int16", 16},   {"complex64", 64}, {"int8", 8},          {"float64", 64},   {"complex128", 128},
     {"uint64", 64},   {"resource", 0}, {"variant", 0},    {"uint32", 32},       {"uint16", 16},    {"int4", 4},
     {"bfloat16", 16}, {"int2", 2},     {"uint4", 4},      {"float8_e4m3fn", 8}, {"float8_e5m2", 8}}};
constexpr std::string_view kUnknownPrefix = "type";

}  // namespace

std::string type_name(DataType type) {
  const auto value = static_cast<std::size_t>(type);
  if (value < kTypes.size()) return std::string(kTypes[value].name);
  return std::string(kUnknownPrefix) + std::to_string(value);
}

std::optional<DataType> type_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  if (name.starts_with(kUnknownPrefix)) {
    name.remove_prefix(kUnknownPrefix.size());
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error == std::errc() && end == name.data() + name.size()) return static_cast<DataType>(value);
  }
  return std::nullopt;
}

int bits_per_element(DataType type) {
  const auto value = static_cast<std::size_t>(type);
  return value < kTypes.size() ? kTypes[value].bits : 0;
}

}  // namespace reef::ir
