// SPDX-License-Identifier: Apache-2.0
// What `reef quantize --json` prints and the library returns (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler/quantize_driver.h"

namespace reef::compiler {

const char* mode_name(quantize::Mode mode);  // "int8"
nlohmann::ordered_json quantize_json(const QuantizeRequest& request, const QuantizeOutcome& outcome);

}  // namespace reef::compiler
