// SPDX-License-Identifier: Apache-2.0
// Pass: a change to a graph that does not change what it computes. passes.def lists them all.
//
// src/passes/<stage>/<file>.cpp defines `constinit const Pass <file>_<stage>_pass = {...}`, with exactly one of the
// four functions. Each tells whether (or how often) it has changed the graph, and must not find its own work again.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/graph.h"
#include "passes/chip/chip_graph.h"
#include "passes/pass_info.h"

namespace reef::passes {

// The editor's vocabulary, which all passes speak.
using namespace graph;

struct Pass {
  std::string_view name;     // "hard-swish"
  std::string_view summary;  // one sentence, for documents
  Safety safety = Safety::kExact;
  bool on_by_default = true;
  bool is_last = false;  // runs when all others have nothing left to do

  // Float passes. `at` looks for its pattern at one operator, which is alive and sound; `whole` at the whole graph.
  bool (*at)(Graph&, OpId) = nullptr;
  int (*whole)(Graph&) = nullptr;
  // Passes that ask what fits the chip and tell the user about every change.
  bool (*at_on_chip)(ChipGraph&, OpId) = nullptr;
  bool (*whole_on_chip)(ChipGraph&) = nullptr;
};

#define REEF_PASS(stage, file) extern const Pass file##_##stage##_pass;
#include "passes/passes.def"
#undef REEF_PASS

}  // namespace reef::passes
