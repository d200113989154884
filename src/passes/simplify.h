// SPDX-License-Identifier: Apache-2.0
// Makes a model small, channels-last and easy to quantize without changing what it computes: exactly, or up to the
// rounding of float32 where passes fold constants into weights or turn sums around (docs/simplify.md says which do).
//
// These are the passes of stage float in passes.def. They run in order, again and again until nothing changes. All
// subgraphs are worked on; inputs and outputs keep their number, order, names, types and shapes, but that sizes left
// open (a batch of -1) are fixed at what the file gives for them (pass fixed-shapes). Operators that Reef does not
// know, that keep a state or whose shapes stay open are left as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::passes {

struct SimplifyOptions {
  std::vector<std::string> disable;  // names of passes
};

struct SimplifyReport {
  bool is_changed = false;
  std::int64_t operators_before = 0, operators_after = 0;
};

// `model` must be verified and stays so. Fails on an unknown name in the options, with nothing changed; any other
// failure is a defect of Reef and leaves no model. Same model, same result.
Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options = {});

}  // namespace reef::passes
