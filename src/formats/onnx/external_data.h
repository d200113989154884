// SPDX-License-Identifier: Apache-2.0
// Tensors whose data stands in files beside the model.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/onnx/model.h"

namespace reef::onnx {

// Reads what initializers and attributes of `model` refer to. A location is a relative path that stays below the
// folder of `model_path`, links included; anything else is refused. All data together may have 2 GiB - 1 bytes.
Status read_external_data(Model& model, const std::string& model_path);

// The files that it would read, which need not exist.
Result<std::vector<std::string>> external_files(const std::string& model_path);

}  // namespace reef::onnx
