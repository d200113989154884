// SPDX-License-Identifier: Apache-2.0
// The converter of every kind of node, for those that hand a part of their work to another's
// (NodeContext::with_inputs). Whoever calls one answers for the inputs that converters.def says it needs.
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

#define CONVERTER(domain, name, function, needs) Status function(NodeContext&, GraphBuilder&);
#define OP_CONVERTER(domain, name, function, op) Status function(NodeContext&, GraphBuilder&, OpName);
#include "import/onnx/converters.def"
#undef CONVERTER
#undef OP_CONVERTER

// The standard opset whose rules nodes of domain com.microsoft follow where they share a converter.
inline constexpr std::int64_t kStandardOpset = 17;

inline Value float_value(Id id) { return {id, onnx::ElementType::kFloat, {}}; }

}  // namespace reef::import
