// SPDX-License-Identifier: Apache-2.0
// Standard nodes that move numbers or choose among them (Transpose, MaxPool, Pad, ...) between quantized nodes, as ONNX
// Runtime's QOperator format has them: they take integers, whose scale the nodes before them say.
//
// They are converted as nodes of real numbers between DEQUANTIZE and QUANTIZE with that scale, from which src/quantize
// makes integer operators; left alone they would be integers without a scale, which no operator behind them can read.
#pragma once

#include <optional>
#include <vector>

#include "import/onnx/converter.h"

namespace reef::import {

struct CarriedScale {
  ir::Quantization quantization;
  Value integers;  // a value of the type that results get
};

// Replaces the integers that `node` takes by real numbers; nullopt, with nothing changed: it is no such node, or its
// operand has no scale.
std::optional<CarriedScale> as_real_numbers(GraphBuilder& b, const onnx::Node& node, std::vector<Value>& inputs);

// Results that are real numbers become integers again.
void as_integers(GraphBuilder& b, const CarriedScale& scale, std::vector<Value>& outputs);

}  // namespace reef::import
