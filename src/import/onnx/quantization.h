// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// (x - zero point) * scale as float32. `axis`: that of the scales, where there are several. zero_point may be kAbsent.
Id dequantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis);

// The reverse, saturated to `type`.
Id quantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis, ir::DataType type);

}  // namespace reef::import
