// SPDX-License-Identifier: Apache-2.0
// What `reef compile --json` prints and the library returns (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler/compile.h"

namespace reef::compiler {

nlohmann::ordered_json compile_json(const CompileOptions& options, const CompileResult& result);

}  // namespace reef::compiler
