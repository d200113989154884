// SPDX-License-Identifier: Apache-2.0
// Convolutions as steps, for operators that are made of several.
#pragma once

#include <memory>

#include "lower/builder.h"

namespace reef::lower {

// A CONV_2D or DEPTHWISE_CONV_2D whose weights, bias and quantization a step has: of another model than the builder's
// (its first graph), or, without one, the step's own operator.
struct LayerSource {
  std::shared_ptr<const ir::Model> model = nullptr;
  std::int32_t op = 0;
  bool keep_zero_biases = false;
};

struct ConvolutionOf {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kGrid
  Windows windows;
  std::int32_t block_words = 0;  // of partial sums, which must divide the input's words; 0: as is best
  LayerSource source = {};
};
// Adds the step for an operator with the parameters of a convolution or a fully connected layer.
void add_convolution(Builder& builder, std::int32_t op, const ConvolutionOf& what);

}  // namespace reef::lower
