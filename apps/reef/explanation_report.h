// SPDX-License-Identifier: Apache-2.0
// What was decided for each compiled part and what it costs: --explain of reef compile.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "compiler/compile.h"

namespace reef::app {

Status print_explanation(const compiler::CompiledFile& file);
// Adds "explanation" to every compiled part in the object that compile_json made.
Status add_explanations(const compiler::CompileResult& result, nlohmann::ordered_json& json);

}  // namespace reef::app
