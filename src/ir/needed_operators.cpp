// SPDX-License-Identifier: Apache-2.0
#include "ir/needed_operators.h"

#include <algorithm>

#include "base/at.h"

namespace reef::ir {

std::vector<bool> needed_operators(const Subgraph& graph) {
  std::vector<bool> is_read(graph.tensors.size(), false), needed(graph.operators.size(), false);
  for (const std::int32_t t : graph.outputs) is_read[at(t)] = true;
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const Operator& op = graph.operators[i];
    needed[i] = op.outputs.empty() || std::any_of(op.outputs.begin(), op.outputs.end(),
                                                  [&](std::int32_t t) { return t >= 0 && is_read[at(t)]; });
    if (!needed[i]) continue;
    for (const std::int32_t t : op.inputs) {
      if (t >= 0) is_read[at(t)] = true;
    }
  }
  return needed;
}

}  // namespace reef::ir
