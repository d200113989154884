// SPDX-License-Identifier: Apache-2.0
// What `reef compile` is given, made into what the compiler takes: quantized .tflite files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"
#include "quantize_arguments.h"

namespace reef::app {

// Of float models and of ONNX models "<stem>_int8.tflite" is made, with samples by calibration, else with the scales
// that the model carries, and takes the model's place in `how`. It is written to the folder of the results, or stays in
// memory where `how` writes nothing. Quantized .tflite files are left as they are. An ONNX model that is neither is an
// error that says what to do. Before any of this, everything that the command is going to write is checked.
struct QuantizedSources {
  bool are_usable = true;  // false: an output of a quantized model was measured to be of no use
  std::string accuracy;    // of the model that was quantized, if one was, in words
};
Result<QuantizedSources> quantize_sources(compiler::CompileOptions& how, const std::vector<std::string>& dumps,
                                          QuantizeArguments& arguments, bool shows_progress);

// "net_edgetpu.tflite" -> "net_edgetpu.schedule.txt": the file of --dump.
std::string dump_path(const std::string& compiled, const std::string& stage);

}  // namespace reef::app
