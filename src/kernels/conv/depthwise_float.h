// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on floats, fast: the same bits as depthwise_convolve_float (conv/depthwise.h), which is the
// reference and does what this does not (several outputs per channel, very few channels).
#pragma once

#include "kernels/conv/depthwise.h"

namespace reef::kernels {

// Rows [row_begin, row_end) of batches * y.output, channels [channel_begin, channel_end). weights: [position][output
// channel]. Several rows at a time are faster than one by one.
void depthwise_float_rows(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                          std::int64_t row_begin, std::int64_t row_end, std::int64_t channel_begin,
                          std::int64_t channel_end, float* output);

}  // namespace reef::kernels
