// SPDX-License-Identifier: Apache-2.0
// A compiled file beside the model that it is said to be made from: what the compiler made of that model, which of its
// operators each package is, and, where they compute different things, whose fault that is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/partwise_evaluation.h"
#include "compiler/verification.h"

namespace reef::compiler {

// The source as the compiler saw it.
struct SourceView {
  std::shared_ptr<const ir::Model> model;  // with rewrites
  std::vector<VerifiedPart> parts;         // by Edge TPU op of the compiled model's main graph
  std::vector<int> generations;
  std::vector<darwinn::Package> packages;
};

// All views that may be meant, best first: with the rewrites that the file records; else as the source is; and, if Reef
// made the file without recording any, with those that are made by default. Empty: in none of them the source has the
// tensors that packages begin and end with; `why` then says which are missing.
struct SourceViews {
  std::vector<SourceView> views;
  Status why;
};
SourceViews views_of_source(const std::shared_ptr<const ir::Model>& source, const ir::Model& compiled);

// What is wrong where a compiled model gives other results than `view` did in its last run.
struct Difference {
  bool is_other_source = false;        // packages have not the weights of this source
  bool is_wrong_program = false;       // they have them, and compute something else with the right inputs
  std::vector<std::string> sentences;  // for people
};
Difference explain_difference(const SourceView& view, const PartwiseEvaluation& run, int threads);

}  // namespace reef::compiler
