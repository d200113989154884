// SPDX-License-Identifier: Apache-2.0
// What converters offer to those of other files, by the file that has it.
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// ---- conv.cpp ----

// Conv of float values, with the node's attributes; bias may be kAbsent. Channels first, as ONNX.
Result<Id> convolution(NodeContext& ctx, Id x, Id weights, Id bias);

// ---- gather_scatter.cpp ----

// Indices into an axis of `size` elements as int32 numbers from 0 on; negative ones count from the end.
Id from_start(GraphBuilder& b, Id indices, std::int64_t size);

// ---- matmul.cpp ----

// numpy.matmul of float values.
Id matrix_product(GraphBuilder& b, Id x, Id y);

// ---- quantization.cpp ----

// (x - zero point) * scale as float32. `axis`: that of the scales, where there are several. zero_point may be kAbsent.
Id dequantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis);

// The reverse, saturated to `type`.
Id quantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis, ir::DataType type);

}  // namespace reef::import
