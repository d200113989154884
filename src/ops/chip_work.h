// SPDX-License-Identifier: Apache-2.0
// What one execution of an op costs the Edge TPU, from shapes alone. All figures are estimates.
#pragma once

#include <cstdint>

#include "ops/op_context.h"

namespace reef::ops {

struct ChipWork {
  double tensor_cycles = 0;            // of the busiest tile's arithmetic unit
  double move_cycles = 0;              // of parameters on the ring, relayout, halos: what does not overlap with it
  std::int64_t parameter_bytes = 0;    // as they lie on the chip: padded, with biases and scales
  std::int64_t instruction_bytes = 0;  // sent with every inference
};

// Any op: what the chip does not have is charged for copying its output. The op's arity is checked; shapes may be
// unknown or absurd, then the work is 0.
ChipWork chip_work(const OpContext& ctx);

}  // namespace reef::ops
