// SPDX-License-Identifier: Apache-2.0
// Makes a model small, channels-last and easy to quantize without changing what it computes: exactly, or up to the
// rounding of float32 where passes fold constants into weights or turn sums around (docs/simplify.md says which do).
//
// These are the passes of stage float in passes.def. They run in order, again and again until nothing changes. All
// subgraphs are worked on; inputs and outputs keep their number, order, names, types and shapes, but that sizes left
// open (a batch of -1) are fixed at what the file gives for them (pass fixed-shapes). Operators that Reef does not
// know, that keep a state or whose shapes stay open are left as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::passes {

struct SimplifyOptions {
  std::vector<std::string> disable;  // names of passes
};

struct PassReport {
  std::string_view name;
  int changes = 0;
};

struct SimplifyReport {
  std::vector<PassReport> passes;  // those that changed something
  std::int64_t operators_before = 0, operators_after = 0;
  std::int64_t transposes_before = 0, transposes_after = 0;
  // Sentences for the user, one per pass: "transposes: 12 changes".
  std::vector<std::string> sentences() const;
};

// `model` must be verified and stays so. Fails on an unknown name in the options, with nothing changed; any other
// failure is a defect of Reef and leaves no model. Same model, same result.
Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options = {});

}  // namespace reef::passes
