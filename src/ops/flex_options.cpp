// SPDX-License-Identifier: Apache-2.0
#include "ops/flex_options.h"

#include <cmath>
#include <limits>
#include <optional>

#include "formats/flexbuffer/flex_view.h"

namespace reef::ops {
namespace {

// Real options take some hundred bytes. Entries may share their names' bytes, so their number is limited too.
constexpr std::size_t kMaxBytes = 1 << 16, kMaxEntries = 1024;

Status malformed() { return invalid_input("the custom options are not a well-formed FlexBuffers map"); }

}  // namespace

Result<FlexOptions> FlexOptions::parse(const Bytes& bytes) {
  if (bytes.size() > kMaxBytes) return malformed();
  const auto root = flexbuffer::FlexView::root(bytes.span());
  if (!root.ok()) return malformed();
  const auto entries = root->entries(kMaxEntries);
  if (!entries.ok()) return malformed();
  FlexOptions options;
  for (const flexbuffer::FlexEntry& entry : *entries) {
    const std::optional<double> number = entry.value.as_double();
    if (number) {
      options.numbers_.emplace(entry.key, *number);
    } else if (const auto elements = entry.value.elements(kMaxEntries); elements.ok()) {
      std::vector<std::int64_t>& list = options.lists_[std::string(entry.key)];
      for (const flexbuffer::FlexView& element : *elements) list.push_back(element.as_int().value_or(-1));
    }
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

std::vector<std::int64_t> FlexOptions::get_ints(std::string_view name) const {
  const auto found = lists_.find(name);
  return found == lists_.end() ? std::vector<std::int64_t>() : found->second;
}

bool FlexOptions::get_bool(std::string_view name, bool fallback) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? fallback : found->second != 0;
}

}  // namespace reef::ops
