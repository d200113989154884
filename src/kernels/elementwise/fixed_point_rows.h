// SPDX-License-Identifier: Apache-2.0
// Rows of numbers brought to an output's scale by TFLite's fixed-point multiplication (numeric/fixed_point.h, which is
// the reference), eight at a time where the CPU can. Equal to the bit: the same two roundings, in 64-bit products and
// 32-bit shifts.
#pragma once

#include <cstdint>

#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

// The last step of a sum: out = clamp(multiply(sum, factor) + zero_point). Limits lie within the output's type.
struct ByteRequantize {
  numeric::Multiplier factor;  // shift in -31...30
  std::int32_t zero_point = 0, lowest = 0, highest = 0;
};

// From the low 32 bits of exact sums. T: int8_t or uint8_t.
template <typename T>
void requantize_row(const ByteRequantize& q, const std::int64_t* sums, std::int64_t count, T* out);

// Squares of differences of int8 numbers, each operand brought to a common scale first. A step is 1, or 0 for one
// number that serves the whole row. `out` may be `x` or `y`.
struct SquaredDifference {
  Rescale x_scaling, y_scaling;  // factors below 1: shifts in -31...0; differences are below 2^15
  ByteRequantize result;         // the same

  void row(const std::int8_t* x, std::int64_t x_step, const std::int8_t* y, std::int64_t y_step, std::int8_t* out,
           std::int64_t count) const;
};

}  // namespace reef::kernels
