// SPDX-License-Identifier: Apache-2.0
// Float convolutions with the reference's order of additions: window rows, window columns, input channels.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/float_columns.h"

namespace reef::kernels {

// One part of the output, whose channels begin and end where blocks of kColumnBlock channels of a group do. Weights:
// one matrix per group, depth() rows in the order [y][x][channel].
void convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights, const FloatOutput& finish,
                    const OutputBlock& part, float* output);

// Transposed convolution; `s` describes the forward convolution's window over the output image: s.y.input is this op's
// input size, s.y.output its output size. Weights: one matrix per window position, depth = input channels. The part's
// first channel is a multiple of kColumnBlock.
void transpose_convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights,
                              const FloatOutput& finish, const OutputBlock& part, float* output);

}  // namespace reef::kernels
