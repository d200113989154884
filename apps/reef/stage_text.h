// SPDX-License-Identifier: Apache-2.0
// What each stage of compiling has made, as text: --dump and --stop-after of reef compile.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compile.h"

namespace reef::app {

// "rewrite", "partition", "lower", "schedule", "emit": in the order of compiling.
const std::vector<std::string>& stage_names();

// Stages that need no code: what they have made of a model.
bool is_planning(const std::string& stage);
std::string planning_text(const std::string& stage, const compiler::Plan& plan);

// Any stage, of a compiled file. Parts without code say why.
Result<std::string> stage_text(const std::string& stage, const compiler::CompileOptions& options,
                               const compiler::CompiledFile& file);

}  // namespace reef::app
