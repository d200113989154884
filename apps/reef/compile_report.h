// SPDX-License-Identifier: Apache-2.0
// What Reef itself says about a compilation: `reef compile`'s answer, and the notes on standard error beside Google's
// text under the name of Google's compiler.
#pragma once

#include <string>

#include "compiler/compile.h"
#include "compiler/pipeline.h"

namespace reef::app {

// `reef compile`'s answer: for each file the verdict and the aligned figures, with the accuracy of a model that was
// quantized on the way.
std::string compile_text(const compiler::PipelineResult& result, bool colour);
// Its notes on standard error: rewrites, warnings.
std::string own_compile_notes(const compiler::CompileResult& result);

// Under Google's name, lines for standard error: what was rewritten and predicted, which figures are estimates, and
// that code is missing. `only_warnings`: that code is missing.
std::string compile_notes(const compiler::CompileOptions& options, const compiler::CompileResult& result,
                          bool only_warnings);

}  // namespace reef::app
