// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

struct ConvolutionOf {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kGrid
  Windows windows;
  std::int32_t block_words = 0;  // of partial sums, which must divide the input's words; 0: as is best
};
// Adds the step for an operator with the parameters of a convolution or a fully connected layer.
void add_convolution(Builder& builder, std::int32_t op, const ConvolutionOf& what);

}  // namespace reef::lower
