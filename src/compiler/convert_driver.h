// SPDX-License-Identifier: Apache-2.0
// reef convert without data: a model of any format as one that a TFLite runtime takes. The command and the library's
// reef_convert are this.
#pragma once

#include <string>

#include "base/status.h"
#include "compiler/front_end.h"
#include "quantize/quantize.h"

namespace reef::compiler {

struct ConvertRequest {
  std::string model;
  FrontEndOptions front_end;
  // A model in ONNX's QDQ or QLinear form becomes integer operators with exactly the scales it carries, unless this
  // says that its QUANTIZE and DEQUANTIZE shall stay.
  bool keep_qdq = false;
  quantize::IoType io = quantize::IoType::kInt8;  // of inputs and outputs, where the model carries scales for them
};

Result<FrontEndResult> convert_model(const ConvertRequest& request);

}  // namespace reef::compiler
