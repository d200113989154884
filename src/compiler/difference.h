// SPDX-License-Identifier: Apache-2.0
// Where a compiled model and its source compute different things: whose fault that is.
#pragma once

#include <string>
#include <vector>

#include "compiler/partwise_evaluation.h"
#include "compiler/source_of_compiled.h"

namespace reef::compiler {

// What is wrong where a compiled model gives other results than `view` did in its last run.
struct Difference {
  bool is_other_source = false;   // packages have not the weights of this source
  bool is_wrong_program = false;  // they have all of its parameters, and compute something else with the right inputs
  std::vector<std::string> sentences;  // for people
};
Difference explain_difference(const SourceView& view, const PartwiseEvaluation& run, int threads);

}  // namespace reef::compiler
