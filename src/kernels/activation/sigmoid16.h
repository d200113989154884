// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of 16-bit numbers, as TFLite's 16x8 reference kernels compute them.
//
// Both read one table of logistic(i / 24), 0 <= i < 256, with 16 fractional bits, and interpolate: logistic directly,
// tanh through tanh(x) = 2 * logistic(2x) - 1. Inputs are first brought to a scale of 1 / (3 * 4096). Beyond 10.6 both
// saturate.
#pragma once

#include <cstdint>

namespace reef::kernels {

// How the input's scale becomes 1 / (3 * 4096): x * multiplier, rounded, >> right_shift.
struct Sigmoid16Scaling {
  std::int32_t multiplier = 3;
  int right_shift = 0;
};

// `exact_left_shifts`: which of the power-of-two scales 2^-12 (bit 0) and 2^-11 (bit 1) are taken without rounding.
Sigmoid16Scaling sigmoid16_scaling(float input_scale, unsigned exact_left_shifts);

// Whether `scale` is a power of two to within a thousandth of an octave; its exponent is then written to `exponent`.
bool is_power_of_two_scale(float scale, int& exponent);

void logistic16(const std::int16_t* input, std::int64_t count, Sigmoid16Scaling scaling, std::int16_t* output);
void tanh16(const std::int16_t* input, std::int64_t count, Sigmoid16Scaling scaling, std::int16_t* output);

}  // namespace reef::kernels
