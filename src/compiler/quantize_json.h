// SPDX-License-Identifier: Apache-2.0
// What `reef quantize --json` prints and the library returns (docs/json.md).
#pragma once

#include <string>

#include "compiler/quantize_driver.h"

namespace reef::compiler {

const char* mode_name(quantize::Mode mode);  // "int8"
std::string quantize_json(const QuantizeRequest& request, const QuantizeOutcome& outcome);

}  // namespace reef::compiler
