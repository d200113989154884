// SPDX-License-Identifier: Apache-2.0
// What is in an ONNX file, as ONNX sees it.
#pragma once

#include <nlohmann/json.hpp>

#include "formats/onnx/model.h"

namespace reef::app {

void print_onnx(const std::string& path, const onnx::Model& model, bool tensors);
nlohmann::ordered_json onnx_json(const std::string& path, const onnx::Model& model);

}  // namespace reef::app
