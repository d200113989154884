// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on floats, fast: the same bits as depthwise_convolve_float (conv/depthwise.h), which is the
// reference and does what this does not (several outputs per channel, very few channels).
#pragma once

#include "kernels/conv/depthwise.h"

namespace reef::kernels {

// One part of the output. weights: [position][output channel].
void depthwise_convolve_float_fast(const ConvShape& s, const float* input, const float* weights,
                                   const FloatOutput& finish, const OutputBlock& block, float* output);

}  // namespace reef::kernels
