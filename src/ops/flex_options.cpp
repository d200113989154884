// SPDX-License-Identifier: Apache-2.0
#include "ops/flex_options.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

namespace reef::ops {
namespace {

// Real options take some hundred bytes. Entries may share their names' bytes, so their number and length are limited
// too.
constexpr std::size_t kMaxBytes = 1 << 16, kMaxEntries = 1024, kMaxNameBytes = 256;

// Type numbers of the format.
enum FlexType : int {
  kInt = 1,
  kUInt = 2,
  kFloat = 3,
  kIndirectInt = 6,
  kIndirectUInt = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kBool = 26
};

// All positions are offsets from the start. Each read gives nothing if it would leave the buffer.
class FlexReader {
 public:
  explicit FlexReader(std::span<const std::uint8_t> data) : data_(data) {}

  std::optional<std::uint64_t> unsigned_at(std::size_t at, std::size_t width) const {
    if (!has(at, width)) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{data_[at + i]} << (8 * i);
    return value;
  }

  // Offsets are stored as distances back from where they are stored.
  std::optional<std::size_t> target_of(std::size_t at, std::size_t width) const {
    const std::optional<std::uint64_t> distance = unsigned_at(at, width);
    if (!distance || *distance > at) return std::nullopt;
    return at - static_cast<std::size_t>(*distance);
  }

  std::optional<std::string_view> text_at(std::size_t at) const {
    if (at >= data_.size()) return std::nullopt;
    const auto* first = reinterpret_cast<const char*>(data_.data()) + at;
    const void* end = std::memchr(first, 0, std::min(data_.size() - at, kMaxNameBytes));
    if (end == nullptr) return std::nullopt;
    return std::string_view(first, static_cast<std::size_t>(static_cast<const char*>(end) - first));
  }

  // A number stored at `at`, or behind the offset there. Nothing if it is not a number or lies outside.
  std::optional<double> number_at(std::size_t at, std::size_t width, std::uint8_t packed_type) const {
    int type = packed_type >> 2;
    if (type >= kIndirectInt && type <= kIndirectFloat) {
      const std::optional<std::size_t> target = target_of(at, width);
      if (!target) return std::nullopt;
      at = *target;
      width = std::size_t{1} << (packed_type & 3);
      type += kInt - kIndirectInt;
    }
    const std::optional<std::uint64_t> bits = unsigned_at(at, width);
    if (!bits) return std::nullopt;
    if (type == kUInt || type == kBool) return static_cast<double>(*bits);
    if (type == kInt) {
      const auto unused = static_cast<int>(64 - 8 * width);
      return static_cast<double>(static_cast<std::int64_t>(*bits << unused) >> unused);
    }
    if (type == kFloat && width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
    if (type == kFloat && width == 8) return std::bit_cast<double>(*bits);
    return std::nullopt;
  }

  bool has(std::size_t at, std::size_t count) const { return at <= data_.size() && count <= data_.size() - at; }
  std::uint8_t byte(std::size_t at) const { return data_[at]; }

 private:
  std::span<const std::uint8_t> data_;
};

bool is_width(std::uint64_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

Status malformed() { return invalid_input("the custom options are not a well-formed FlexBuffers map"); }

}  // namespace

Result<FlexOptions> FlexOptions::parse(const Bytes& bytes) {
  const std::size_t size = bytes.size();
  if (size < 3 || size > kMaxBytes) return malformed();
  const FlexReader reader(bytes.span());
  // At the end: the root's value, its type with the width of what it points to, and the width of the value itself.
  const std::size_t root_width = reader.byte(size - 1), width = std::size_t{1} << (reader.byte(size - 2) & 3);
  if (!is_width(root_width) || size < 2 + root_width || reader.byte(size - 2) >> 2 != kMap) return malformed();
  const std::optional<std::size_t> map = reader.target_of(size - 2 - root_width, root_width);
  // Before the values: where the keys are, the width of their offsets, and how many values there are.
  if (!map || *map < 3 * width) return malformed();
  const std::optional<std::size_t> keys = reader.target_of(*map - 3 * width, width);
  const std::optional<std::uint64_t> key_width = reader.unsigned_at(*map - 2 * width, width);
  const std::optional<std::uint64_t> count = reader.unsigned_at(*map - width, width);
  if (!keys || !key_width || !is_width(*key_width) || !count || *count > kMaxEntries) return malformed();
  const auto key_step = static_cast<std::size_t>(*key_width);
  if (*keys < key_step || reader.unsigned_at(*keys - key_step, key_step) != count) return malformed();
  FlexOptions options;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::optional<std::size_t> key = reader.target_of(*keys + i * key_step, key_step);
    const std::optional<std::string_view> name = key ? reader.text_at(*key) : std::nullopt;
    const std::size_t type_at = *map + static_cast<std::size_t>(*count) * width + i;
    if (!name || !reader.has(type_at, 1) || !reader.has(*map + i * width, width)) return malformed();
    const std::optional<double> number = reader.number_at(*map + i * width, width, reader.byte(type_at));
    if (number) options.numbers_.emplace(*name, *number);
  }
  return options;
}

Result<std::int32_t> FlexOptions::get_int(std::string_view name, std::int32_t fallback) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return fallback;
  constexpr double kMin = std::numeric_limits<std::int32_t>::min(), kMax = std::numeric_limits<std::int32_t>::max();
  REEF_REQUIRE(found->second >= kMin && found->second <= kMax, "custom option '{}' is {}, which does not fit 32 bits",
               name, found->second);
  return static_cast<std::int32_t>(found->second);
}

Result<std::uint32_t> FlexOptions::get_uint32(std::string_view name, std::uint32_t fallback) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return fallback;
  constexpr double kMin = std::numeric_limits<std::int32_t>::min(), kMax = std::numeric_limits<std::uint32_t>::max();
  REEF_REQUIRE(found->second >= kMin && found->second <= kMax, "custom option '{}' is {}, which does not fit 32 bits",
               name, found->second);
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(found->second));
}

Result<float> FlexOptions::get_float(std::string_view name, float fallback) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return fallback;
  REEF_REQUIRE(!std::isfinite(found->second) || std::abs(found->second) <= std::numeric_limits<float>::max(),
               "custom option '{}' is {}, which does not fit a float", name, found->second);
  return static_cast<float>(found->second);
}

bool FlexOptions::get_bool(std::string_view name, bool fallback) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? fallback : found->second != 0;
}

}  // namespace reef::ops
