// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/model.h"

#include <fmt/format.h>

namespace reef::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};

constexpr TypeRow kTypes[] = {{"undefined", 0},      {"float32", 32},     {"uint8", 8},          {"int8", 8},
                              {"uint16", 16},        {"int16", 16},       {"int32", 32},         {"int64", 64},
                              {"string", 0},         {"bool", 8},         {"float16", 16},       {"float64", 64},
                              {"uint32", 32},        {"uint64", 64},      {"complex64", 64},     {"complex128", 128},
                              {"bfloat16", 16},      {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
                              {"float8e5m2fnuz", 8}, {"uint4", 4},        {"int4", 4},           {"float4e2m1", 4}};

const TypeRow* row_of(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kTypes) ? &kTypes[index] : nullptr;
}

}  // namespace

std::string element_type_name(ElementType type) {
  const TypeRow* row = row_of(type);
  return row != nullptr ? std::string(row->name) : fmt::format("type {}", static_cast<std::int32_t>(type));
}

int bits_of(ElementType type) {
  const TypeRow* row = row_of(type);
  return row != nullptr ? row->bits : 0;
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

std::int64_t Model::opset(std::string_view domain) const {
  const auto canonical = [](std::string_view name) { return name == "ai.onnx" ? std::string_view() : name; };
  for (const OpsetImport& row : opsets) {
    if (canonical(row.domain) == canonical(domain)) return row.version;
  }
  return 0;
}

}  // namespace reef::onnx
