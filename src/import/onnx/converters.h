// SPDX-License-Identifier: Apache-2.0
// The converter of every kind of node, for those that hand a part of their work to another's
// (NodeContext::with_inputs).
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

#define CONVERTER(domain, name, function) Status function(NodeContext&);
#include "import/onnx/converters.def"
#undef CONVERTER

// The standard opset whose rules nodes of domain com.microsoft follow where they share a converter.
inline constexpr std::int64_t kStandardOpset = 17;

inline Value float_value(Id id) { return {id, onnx::ElementType::kFloat, {}}; }

}  // namespace reef::import
