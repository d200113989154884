// SPDX-License-Identifier: Apache-2.0
// Convolutions as Conv, QLinearConv and ConvInteger share them.
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// Conv of float values, with the node's attributes; bias may be kAbsent. Channels first, as ONNX.
Result<Id> convolution(NodeContext& ctx, Id x, Id weights, Id bias);

}  // namespace reef::import
