// SPDX-License-Identifier: Apache-2.0
// The tensor unit's work on one instruction. Private to the device.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/device/chip.h"

namespace reef::device {

struct TensorRun {
  isa::NestCursor in, param, psum, out;  // the loops are Running::first
  std::int64_t slots = 1;                // results under way at once
  std::vector<std::int32_t> sums;        // slots x cells
  std::int64_t results = 0;              // finished
};

}  // namespace reef::device
