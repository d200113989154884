// SPDX-License-Identifier: Apache-2.0
#include "formats/flexbuffer/flex_view.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace reef::flexbuffer {
namespace {

constexpr std::size_t kMaxKeyBytes = 256;  // with the zero byte

bool is_width(std::uint64_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

}  // namespace

Status FlexView::malformed() const {
  return invalid_input("the value at byte {} of the FlexBuffer is not well formed", at_);
}

Result<FlexView> FlexView::root(std::span<const std::uint8_t> data) {
  // At the end: the root's value, its type with the width of what it points to, and the width of the value itself.
  const std::size_t size = data.size();
  REEF_REQUIRE(size >= 3, "{} bytes are too few for a FlexBuffer", size);
  const std::size_t width = data[size - 1];
  REEF_REQUIRE(is_width(width) && size >= 2 + width, "byte {}: a FlexBuffer's root does not have {} bytes", size - 1,
               width);
  return FlexView(data, size - 2 - width, width, data[size - 2]);
}

std::optional<std::uint64_t> FlexView::unsigned_at(std::size_t at, std::size_t width) const {
  if (!has(at, width)) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{data_[at + i]} << (8 * i);
  return value;
}

// Offsets are stored as distances back from where they are stored.
std::optional<std::size_t> FlexView::target_of(std::size_t at, std::size_t width) const {
  const std::optional<std::uint64_t> distance = unsigned_at(at, width);
  if (!distance || *distance > at) return std::nullopt;
  return at - static_cast<std::size_t>(*distance);
}

std::optional<FlexView::Number> FlexView::number() const {
  std::size_t at = at_, width = width_;
  std::uint8_t type = type_;
  if (type >= kIndirectInt && type <= kIndirectFloat) {
    const std::optional<std::size_t> target = target_of(at, width);
    if (!target) return std::nullopt;
    at = *target;
    width = child_width_;
    type = static_cast<std::uint8_t>(type - kIndirectInt + kInt);
  }
  if (type != kInt && type != kUInt && type != kFloat && type != kBool) return std::nullopt;
  const std::optional<std::uint64_t> bits = unsigned_at(at, width);
  if (!bits) return std::nullopt;
  const auto unused = static_cast<int>(64 - 8 * width);
  const auto extended = static_cast<std::uint64_t>(static_cast<std::int64_t>(*bits << unused) >> unused);
  return Number{type, static_cast<std::uint8_t>(width), type == kInt ? extended : *bits};
}

std::optional<double> FlexView::as_double() const {
  const std::optional<Number> value = number();
  if (!value) return std::nullopt;
  if (value->type == kInt) return static_cast<double>(static_cast<std::int64_t>(value->bits));
  if (value->type != kFloat) return static_cast<double>(value->bits);
  if (value->width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(value->bits));
  if (value->width == 8) return std::bit_cast<double>(value->bits);
  return std::nullopt;
}

std::optional<std::int64_t> FlexView::as_int() const {
  const std::optional<Number> value = number();
  if (!value || value->type == kFloat) return std::nullopt;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value->type != kInt && value->bits > kMax) return std::nullopt;
  return static_cast<std::int64_t>(value->bits);
}

std::optional<FlexView::Range> FlexView::as_bytes() const {
  if (type_ != kString && type_ != kBlob) return std::nullopt;
  const std::optional<std::size_t> target = target_of(at_, width_);
  if (!target || *target < child_width_) return std::nullopt;
  const std::optional<std::uint64_t> size = unsigned_at(*target - child_width_, child_width_);
  if (!size || *size > data_.size() - *target) return std::nullopt;
  const auto count = static_cast<std::size_t>(*size);
  if (type_ == kString && (!has(*target + count, 1) || data_[*target + count] != 0)) return std::nullopt;
  return Range{*target, count};
}

Result<std::vector<FlexView>> FlexView::elements(std::size_t max_elements) const {
  const bool is_fixed = type_ >= kVectorInt2 && type_ <= kVectorFloat4;
  const bool is_typed = (type_ >= kVectorInt && type_ <= kVectorString) || type_ == kVectorBool;
  REEF_REQUIRE(is_fixed || is_typed || type_ == kVector || type_ == kMap, "the value at byte {} is not a list", at_);
  const std::optional<std::size_t> target = target_of(at_, width_);
  if (!target || (!is_fixed && *target < child_width_)) return malformed();
  const std::optional<std::uint64_t> stored = is_fixed ? static_cast<std::uint64_t>((type_ - kVectorInt2) / 3 + 2)
                                                       : unsigned_at(*target - child_width_, child_width_);
  if (!stored || *stored > data_.size() / child_width_) return malformed();
  const auto count = static_cast<std::size_t>(*stored);
  REEF_REQUIRE(count <= max_elements, "the list at byte {} has {} elements; at most {} make sense here", *target, count,
               max_elements);
  const std::size_t types_at = *target + count * child_width_;
  if (!has(*target, count * child_width_) || (!is_fixed && !is_typed && !has(types_at, count))) return malformed();
  std::vector<FlexView> result;
  result.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    int type = kBool;
    if (is_fixed) type = kInt + (type_ - kVectorInt2) % 3;
    if (is_typed && type_ != kVectorBool) type = kInt + (type_ - kVectorInt);
    const auto packed = is_fixed || is_typed ? static_cast<std::uint8_t>(type << 2) : data_[types_at + i];
    result.push_back(FlexView(data_, *target + i * child_width_, child_width_, packed));
  }
  return result;
}

Result<std::vector<FlexEntry>> FlexView::entries(std::size_t max_entries) const {
  REEF_REQUIRE(is_map(), "the value at byte {} is not a map", at_);
  REEF_ASSIGN_OR_RETURN(const std::vector<FlexView> values, elements(max_entries));
  const std::optional<std::size_t> map = target_of(at_, width_);
  // Before the values: where the keys are, the width of their offsets, and how many values there are.
  if (!map || *map < 3 * child_width_) return malformed();
  const std::optional<std::size_t> keys = target_of(*map - 3 * child_width_, child_width_);
  const std::optional<std::uint64_t> key_width = unsigned_at(*map - 2 * child_width_, child_width_);
  if (!keys || !key_width || !is_width(*key_width)) return malformed();
  const auto step = static_cast<std::size_t>(*key_width);
  if (*keys < step || unsigned_at(*keys - step, step) != values.size()) return malformed();
  std::vector<FlexEntry> result;
  result.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<std::size_t> key = target_of(*keys + i * step, step);
    if (!key || *key >= data_.size()) return malformed();
    const auto* first = reinterpret_cast<const char*>(data_.data()) + *key;
    const void* end = std::memchr(first, 0, std::min(data_.size() - *key, kMaxKeyBytes));
    if (end == nullptr) return malformed();
    result.push_back(
        {std::string_view(first, static_cast<std::size_t>(static_cast<const char*>(end) - first)), values[i]});
  }
  return result;
}

}  // namespace reef::flexbuffer
