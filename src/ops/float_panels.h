// SPDX-License-Identifier: Apache-2.0
// Float weights made ready for kernels/matmul/float_panels.h, and running it over a whole output.
#pragma once

#include <cstdint>

#include "kernels/conv/conv_float.h"
#include "kernels/matmul/float_panels.h"
#include "ops/conv_family.h"
#include "ops/weights.h"

namespace reef::ops {

// Weights in rows of s.depth(), one per output channel. Where they are not all finite and windows reach beyond the
// image, the reference kernel takes them, because 0 * infinity is not 0.
struct FloatConvWeights {
  kernels::FloatPanels panels;
  kernels::PackedColumns columns;  // empty unless needed
  bool is_fast() const { return columns.values.empty(); }
};
FloatConvWeights pack_float_weights(const float* rows, const kernels::ConvShape& s);

// The whole output, on all threads.
void run_float_convolution(const RunContext& ctx, const kernels::ConvShape& s, const float* input,
                           const FloatConvWeights& weights, const kernels::FloatOutput& finish, float* output);

// The float kernel of ops whose weights are rows of s.depth(): CONV_2D and FULLY_CONNECTED.
Result<Kernel> float_panels_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ConvOperands& at);

// One matrix product on the calling thread's behalf: `rows` rows of x (depth numbers each) times matrix `matrix`.
kernels::ConvShape product_shape(std::int64_t rows, std::int64_t columns, std::int64_t depth);

}  // namespace reef::ops
