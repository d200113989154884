// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <algorithm>

namespace reef::ops {

Result<WindowAxis> window_axis(std::int64_t input_size, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                               std::string_view padding) {
  REEF_REQUIRE(input_size >= 1 && window >= 1 && stride >= 1 && dilation >= 1,
               "input size {}, window {}, stride {} and dilation {} must all be at least 1", input_size, window, stride,
               dilation);
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // keeps products below in 64 bits
  REEF_REQUIRE(window < kLimit && stride < kLimit && dilation < kLimit,
               "window {}, stride {} or dilation {} is too large", window, stride, dilation);
  const std::int64_t reach = (window - 1) * dilation + 1;
  std::int64_t output = 0;
  if (padding == "SAME") {
    output = (input_size + stride - 1) / stride;
  } else if (padding == "VALID") {
    output = input_size < reach ? 0 : (input_size - reach) / stride + 1;
  } else {
    return unsupported("padding {} is not known; SAME or VALID is needed", padding);
  }
  REEF_REQUIRE(output >= 1, "a window of {} (dilation {}) does not fit into an input of {} with {} padding", window,
               dilation, input_size, padding);
  const std::int64_t total_padding = std::max<std::int64_t>((output - 1) * stride + reach - input_size, 0);
  REEF_REQUIRE(total_padding / 2 < kLimit, "a window of {} with dilation {} needs too much padding", window, dilation);
  return WindowAxis{static_cast<std::int32_t>(output), static_cast<std::int32_t>(total_padding / 2)};
}

}  // namespace reef::ops
