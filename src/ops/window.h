// SPDX-License-Identifier: Apache-2.0
// Geometry of sliding windows along one dimension: convolutions and pools.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace reef::ops {

struct WindowAxis {
  std::int32_t output_size = 0;
  std::int32_t pad_before = 0;  // SAME: half of the padding, the odd one goes behind. VALID: 0
};

// `padding` is "SAME" or "VALID". Refuses sizes, strides or dilations below 1 and empty results.
Result<WindowAxis> window_axis(std::int64_t input_size, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                               std::string_view padding);

}  // namespace reef::ops
