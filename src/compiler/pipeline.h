// SPDX-License-Identifier: Apache-2.0
// The compiler as a whole: models of any format in, compiled files out. `reef compile`, reef_compile and Python's
// reef.compile are this.
//
//   check the request -> load -> simplify and quantize what is not quantized -> compile -> write
//
// Models go from stage to stage in memory. The names of all files are checked before any work is done, and all files
// (quantized models, compiled models, logs, and what `beside` adds) are written together at the end, or none of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"
#include "compiler/graph_files.h"
#include "compiler/quantize_driver.h"

namespace reef::compiler {

// A model that was quantized on the way.
struct QuantizedModel {
  std::string model;   // the file that was given
  std::string output;  // "<stem>_int8.tflite", beside the compiled file; it stands for the model in CompileResult
  QuantizeOutcome outcome;
};

struct PipelineResult;

struct PipelineRequest {
  // `compile.models` may be of any format that the front end reads. Quantized .tflite files are compiled as they are.
  CompileOptions compile;
  // Says how the others are loaded and quantized: with samples by calibration, else with the scales that the model
  // carries. `model`, `output` and `report` are not looked at.
  QuantizeRequest quantize;
  // Told of each model that was quantized, before it is compiled.
  std::function<void(const QuantizeRequest& request, const QuantizedModel& model)> quantized;
  // Further files for a compiled one: their names, known beforehand, and their content.
  std::function<std::vector<std::string>(const std::string& compiled)> beside_names;
  std::function<Result<std::vector<FileBeside>>(const CompiledFile& file, const PipelineResult& result)> beside;
};

struct PipelineResult {
  CompileOptions compile;  // as used: quantized models in the place of those that were given
  std::vector<QuantizedModel> quantized;
  CompileResult compiled;  // its refusals, if any, are why nothing was written

  // The record of the float passes on a compiled file's model; null if the model was given quantized.
  const passes::PassLog* float_log(const CompiledFile& file) const;
  // False: an output of a quantized model was measured to be of no use.
  bool is_usable() const;
};

// Fails where a model cannot be loaded or quantized, or a file must not be written. What the compiler refuses is in the
// result.
Result<PipelineResult> run_pipeline(const PipelineRequest& request);

// Does the model compute with integers, so that it is compiled as it is?
bool is_quantized(const ir::Model& model);

// Loads and quantizes, but does not compile: for looking at what the compiler would be given. Writes nothing.
Result<PipelineResult> run_front_half(const PipelineRequest& request);

}  // namespace reef::compiler
