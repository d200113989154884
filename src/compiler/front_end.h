// SPDX-License-Identifier: Apache-2.0
// A model file of any format Reef reads -> a verified ir::Model, simplified where its format calls for it.
//
// This is the only entrance: commands, libreef and drivers read models here and nowhere else (commands that only show
// a file's content, inspect and disasm, read the file itself). After it the model passes ir::verify, and the declared
// shape of every tensor is the one that its operators give (ops/settled_shapes.h), which all later stages rely on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"
#include "compiler/resize_inputs.h"
#include "ir/model.h"
#include "passes/pass_log.h"

namespace reef::compiler {

struct FrontEndOptions {
  // Sizes of inputs whose file leaves them open, or says otherwise; by the input's name in the file, "" for the only
  // one.
  InputShapes input_shapes = {};
  // TFLite: give the inputs those sizes. False: the caller does, as an interpreter can.
  bool resizes_tflite = true;
  // ONNX: inputs with a fixed value (sizes, axes), which are no inputs of the result.
  std::map<std::string, std::vector<double>> input_values = {};
  // ONNX: inputs and outputs (names) that stay channels-first; all others become channels-last.
  std::vector<std::string> keep_nchw = {};
  // ONNX: NonMaxSuppression gives a result of fixed size, unused rows -1, and a count.
  bool pad_selections = false;
  // ONNX: LSTMs step by step, also where one operator would do.
  bool unroll = false;
  // ONNX: make the imported graph small and channels-last (src/passes/float).
  bool simplify = true;
  // The caller prepares the model in the CPU runtime, perhaps after giving its inputs other shapes: an operator that
  // refuses the declared ones is reported there, and not here.
  bool may_resize = false;
  passes::LogRequest log = {};  // what FrontEndResult::log shall hold
  Budget budget = {};
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
  // The one of them that says that declared shapes were replaced; empty: none was. For commands that write no model of
  // this kind, to which what saving would lose does not matter.
  std::string shape_note;
  bool is_simplified = false;  // the passes of src/passes/float have run
  passes::PassLog log;         // of those passes
};

// The format is told by the file's content.
Result<FrontEndResult> load_any_model(const std::string& path, const FrontEndOptions& options = {});

// Only .tflite: from a file, and from bytes that the result keeps. `input_shapes` and what is said to be ONNX's does
// not matter.
Result<FrontEndResult> load_tflite_model(const std::string& path, const FrontEndOptions& options = {});
Result<FrontEndResult> read_tflite_model(const Bytes& file, const FrontEndOptions& options = {});

// Simplifies the model unless that was done, and adds to its log. The report is empty where there was nothing to do.
Result<passes::SimplifyReport> simplify_once(FrontEndResult& loaded);

// What the functions above do with a model as it was read: ir::verify, then ops::settle_shapes. The result is
// a note for the user where the file declares shapes that its operators do not give, else empty. Fails, naming the
// operator, where an operator refuses its operands and the inputs cannot be resized.
Result<std::string> admit_model(ir::Model& model, const FrontEndOptions& options = {});

}  // namespace reef::compiler
