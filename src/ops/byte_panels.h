// SPDX-License-Identifier: Apache-2.0
// 8-bit weights made ready for kernels/matmul/byte_panels.h, and the kernel that runs them over a whole output.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/byte_panels.h"
#include "ops/weights.h"

namespace reef::ops {

// Which inputs of an op hold what, and the weights' zero point.
struct ByteOperands {
  int input = 0, weights = 1, bias = 2;
  std::int32_t input_zero_point = 0, weights_zero_point = 0;
  bool has_channels_last = false;  // weights are [position][channel] instead, as of a depthwise layer with one input
};

// The kernel of a convolution whose weights are rows of s.depth(). T: int8_t or uint8_t, of input and output. Asks for
// kernels::has_byte_panels() and kernels::suits_byte_scaling(requantizer).
template <typename T>
Kernel byte_panels_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ByteOperands& at,
                          const kernels::Requantizer& requantizer);

// Gives a run the scaling of its sums: made once where weights and bias are constant, else anew.
// make(weights, bias of all channels or null).
class ByteScalingSource {
 public:
  using Make = std::function<kernels::ByteScaling(const Tensor&, const std::int64_t*)>;
  ByteScalingSource(const PrepareContext& ctx, int weights, int bias, Make make);
  LentOrMade<kernels::ByteScaling> operator()(const RunContext& run) const;

 private:
  kernels::ByteScaling made_for(const OpContext& ctx) const;

  int weights_, bias_;
  Make make_;
  std::shared_ptr<const kernels::ByteScaling> constant_;
};

}  // namespace reef::ops
