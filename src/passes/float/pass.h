// SPDX-License-Identifier: Apache-2.0
// What a pass is. passes.def lists them all.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace reef::simplify {

struct Pass {
  std::string_view name;     // "transposes"
  std::string_view summary;  // one sentence, for documents
  // Looks for its pattern at one operator, which is alive and sound, and replaces it. True: the graph is changed.
  bool (*at)(Graph&, OpId) = nullptr;
  // Or: looks at the whole graph; the number of changes.
  int (*whole)(Graph&) = nullptr;
  // Runs when all others have nothing left to do.
  bool is_last = false;
};

}  // namespace reef::simplify
