// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and LOG_SOFTMAX of rows, as TFLite's reference kernels compute them.
//
// 8-bit rows go through fixed point: differences from the row's maximum as Q5.26, their exponentials summed as Q12.19.
// That sum holds rows of fewer than 4096 equal maxima; TFLite stops or wraps beyond, these functions say so by
// returning false (what they wrote to that row is then unspecified). 16-bit rows use tables. Floats follow the
// definition.
#pragma once

#include <cstdint>
#include <optional>

#include "numeric/fixed_point.h"
#include "numeric/lookup_table.h"

namespace reef::kernels {

// Maps a difference of quantized numbers to Q5.26.
struct DifferenceScaling {
  std::int32_t multiplier = 0;
  int left_shift = 0;        // 0 to 31
  std::int32_t minimum = 0;  // differences below this have an exponential of 0
};

// nullopt: beta * input_scale is so small (below 2^-26), or not a number, that TFLite refuses it.
std::optional<DifferenceScaling> difference_scaling(double beta, double input_scale);

struct Rows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t depth = 0;  // elements of one row
};

void softmax(const float* input, Rows rows, float beta, float* output);
// IEEE halves as bit patterns.
void softmax_half(const std::uint16_t* input, Rows rows, float beta, std::uint16_t* output);

// In: int8 or uint8. Out: In, or int16.
template <typename In, typename Out>
bool softmax_8bit(const In* input, Rows rows, const DifferenceScaling& scaling, Out* output);

// Tables of exp(x) on [-10, 0] and 1 / (1 + x) on [0, 1], and the factor from input differences to the former's steps.
struct Softmax16Tables {
  numeric::Table16 exp;
  numeric::Table16 one_over_one_plus_x;
  numeric::Multiplier input_factor;
};
Softmax16Tables softmax16_tables(float input_scale, float beta);
bool softmax_16bit(const std::int16_t* input, Rows rows, const Softmax16Tables& tables, std::int16_t* output);

void log_softmax(const float* input, Rows rows, float* output);

struct LogSoftmaxScaling {
  DifferenceScaling difference;
  numeric::Multiplier reverse;  // from Q5.26 back to differences
};
// nullopt: TFLite refuses the scale (it is below 2^-25, about).
std::optional<LogSoftmaxScaling> log_softmax_scaling(double input_scale);
// T: int8 or uint8. The output's scale is 1/16 and its zero point T's maximum.
template <typename T>
bool log_softmax_8bit(const T* input, Rows rows, const LogSoftmaxScaling& scaling, T* output);

}  // namespace reef::kernels
