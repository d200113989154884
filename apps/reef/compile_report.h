// SPDX-License-Identifier: Apache-2.0
// What Reef itself says about a compilation, on standard error beside Google's text.
#pragma once

#include <string>

#include "compiler/compile.h"

namespace reef::app {

// Lines for standard error: what was rewritten and predicted, which figures are estimates, and that code is missing.
// `only_warnings`: that code is missing.
std::string compile_notes(const compiler::CompileOptions& options, const compiler::CompileResult& result,
                          bool only_warnings);

}  // namespace reef::app
