// SPDX-License-Identifier: Apache-2.0
// What `reef compile` is given, made into what the compiler takes: quantized .tflite files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "quantize_arguments.h"

namespace reef::app {

// Of float models and of ONNX models, "<stem>_int8.tflite" is written to `out_dir` (empty: the current folder) and
// takes the model's place; with samples by calibration, else with the scales that the model carries. Quantized .tflite
// files are left as they are. An ONNX model that is neither is an error that says what to do.
Result<std::vector<std::string>> quantized_sources(const std::vector<std::string>& models, const std::string& out_dir,
                                                   QuantizeArguments& arguments, bool shows_progress);

}  // namespace reef::app
