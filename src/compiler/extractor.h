// SPDX-License-Identifier: Apache-2.0
// An extractor compiled for the Edge TPU, in memory.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/model.h"

namespace reef::compiler {

// `name` is for messages. Fails where nothing of the model can be compiled, with the compiler's reason.
Result<ir::Model> compiled_extractor(const ir::Model& extractor, const std::string& name);

}  // namespace reef::compiler
