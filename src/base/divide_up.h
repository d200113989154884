// SPDX-License-Identifier: Apache-2.0
// Division that rounds up: how many pieces of `unit` cover `value`.
#pragma once

#include <cstdint>

namespace reef {

// `value` must not be negative, `unit` must be positive, and the result must fit 32 bits.
constexpr std::int32_t divide_up(std::int64_t value, std::int64_t unit) {
  return static_cast<std::int32_t>((value + unit - 1) / unit);
}

}  // namespace reef
