// SPDX-License-Identifier: Apache-2.0
// reef inspect --unknown: what is in a compiled model's programs that no public file has.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/model.h"

namespace reef::app {

Status inspect_unknown(const std::string& file, const ir::Model& model, bool as_json);

}  // namespace reef::app
