// SPDX-License-Identifier: Apache-2.0
// The parts of `reef inspect`, each in a file of its own.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/onnx/model.h"
#include "ir/model.h"

namespace reef::app {

// What is in an ONNX file, as ONNX sees it (inspect_onnx.cpp).
void print_onnx(const std::string& path, const onnx::Model& model, bool tensors);
nlohmann::ordered_json onnx_json(const std::string& path, const onnx::Model& model);

// What is in an Edge TPU package (inspect_package.cpp). `custom_options`: of an edgetpu-custom-op. Fails where the
// package cannot be read.
Result<std::string> describe_package(const Bytes& custom_options);
Result<nlohmann::ordered_json> package_json(const Bytes& custom_options);

// What is in a compiled model's programs that no public file has (inspect_unknown.cpp).
Status inspect_unknown(const std::string& file, const ir::Model& model, bool as_json);

}  // namespace reef::app
