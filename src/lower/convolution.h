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
};
// Tensors are TiledProgram's.
void add_convolution(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output, const Windows& windows,
                     const LayerSource& source = {});

}  // namespace reef::lower
