// SPDX-License-Identifier: Apache-2.0
// A compiled file beside the model that it is said to be made from: what the compiler made of that model, and which of
// its operators each package is.
#pragma once

#include <memory>
#include <string>
#include <vector>

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

// The source, or, where recorded rewrites change types or numbers of its inputs or outputs, the source after them: what
// the compiled model can be compared with.
std::shared_ptr<const ir::Model> with_border_of(const std::shared_ptr<const ir::Model>& source,
                                                const ir::Model& compiled);

}  // namespace reef::compiler
