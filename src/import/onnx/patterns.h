// SPDX-License-Identifier: Apache-2.0
// Nodes that together are one operation are made one node, where TFLite has no operator for their parts: GELU written
// with Erf, products of activations that are rounded while the model runs. (What TFLite's operators can express is
// recognised later, in src/passes/float.)
#pragma once

#include <vector>

#include "formats/onnx/model.h"

namespace reef::import {

// The nodes of `graph`, in order, with "Gelu" (domain "", as in opset 20) in place of its expansions, and
// "DynamicQuantizeMatMul" and "DynamicQuantizeConv" (domain "com.microsoft") in place of theirs.
std::vector<onnx::Node> with_patterns(const onnx::Graph& graph);

}  // namespace reef::import
