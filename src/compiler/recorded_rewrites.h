// SPDX-License-Identifier: Apache-2.0
// A compiled file says which rewrites were made before it was compiled, so that it can be compared with its source
// later: the same rewrites of the source give the model whose operators are in the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan.h"

namespace reef::compiler {

// The line for emit::EmitOptions::remarks; empty: none was made.
std::string rewrites_remark(const std::vector<passes::Application>& rewrites, const PlanOptions& options);

// How to plan the source to get the same rewrites; nullopt: the file does not say.
std::optional<PlanOptions> recorded_rewrites(const ir::Model& compiled);

}  // namespace reef::compiler
