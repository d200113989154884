// SPDX-License-Identifier: Apache-2.0
// The list of passes and the walk of one pass over a graph, for the two stages (simplify.h, rewrite.h).
#pragma once

#include <limits>
#include <span>

#include "passes/pass.h"
#include "passes/pass_log.h"

namespace reef::passes {

// The passes that run in a stage, in that order; passes_of(stage) describes them, one for one.
std::span<const Pass* const> list_of(Stage stage);

// Runs a pass over the whole graph once. What a change leaves without readers is removed before the pass looks on.
// Returns the number of changes. No further one is made once the graph has seen `most` of them. `round`: how often the
// whole stage has run, from 1; for the log.
int run_pass(const Pass& pass, Graph& graph, PassLog& log, int round);
int run_pass(const Pass& pass, ChipGraph& graph, PassLog& log, int round, int most = std::numeric_limits<int>::max());

}  // namespace reef::passes
