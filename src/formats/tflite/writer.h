// SPDX-License-Identifier: Apache-2.0
// ir::Model -> .tflite bytes. Same model, same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

Result<std::vector<std::uint8_t>> write_model(const ir::Model& model);

// The same without a copy: the file's bytes as the builder made them.
Result<Bytes> write_bytes(const ir::Model& model);

// write_bytes, then the file appears whole or not at all.
Status save_model(const ir::Model& model, const std::string& path);

}  // namespace reef::tflite
