// SPDX-License-Identifier: Apache-2.0
// ir::Model -> .tflite bytes. Same model, same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

Result<std::vector<std::uint8_t>> write_model(const ir::Model& model);

// write_model, then the file appears whole or not at all.
Status save_model(const ir::Model& model, const std::string& path);

}  // namespace reef::tflite
