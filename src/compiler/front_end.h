// SPDX-License-Identifier: Apache-2.0
// A model file of any format Reef reads -> a verified ir::Model, simplified where its format calls for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/resize_inputs.h"
#include "ir/model.h"

namespace reef::compiler {

struct FrontEndOptions {
  // Sizes of inputs whose file leaves them open, or says otherwise; by the input's name in the file, "" for the only
  // one.
  InputShapes input_shapes;
  // TFLite: give the inputs those sizes. False: the caller does, as an interpreter can.
  bool resizes_tflite = true;
  // ONNX: inputs with a fixed value (sizes, axes), which are no inputs of the result.
  std::map<std::string, std::vector<double>> input_values;
  // ONNX: inputs and outputs (names) that stay channels-first; all others become channels-last.
  std::vector<std::string> keep_nchw;
  // ONNX: NonMaxSuppression gives a result of fixed size, unused rows -1, and a count.
  bool pad_selections = false;
  // ONNX: LSTMs step by step, also where one operator would do.
  bool unroll = false;
  // ONNX: make the imported graph small and channels-last (src/simplify).
  bool simplify = true;
};

enum class ModelFormat { kTflite, kOnnx };

// A tensor of the result and what the file it came from calls it.
struct TensorOrigin {
  std::string tensor;  // name in the result
  std::string name;    // name in the file
};

struct FrontEndResult {
  ir::Model model;  // passes ir::verify
  ModelFormat format = ModelFormat::kTflite;
  std::vector<TensorOrigin> origins;  // empty: names are the file's own
  std::vector<std::string> notes;     // sentences for the user
};

// The format is told by the file's content.
Result<FrontEndResult> load_any_model(const std::string& path, const FrontEndOptions& options = {});

}  // namespace reef::compiler
