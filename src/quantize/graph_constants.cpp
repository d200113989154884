// SPDX-License-Identifier: Apache-2.0
#include "quantize/graph_constants.h"

#include <algorithm>

namespace reef::quantize {

void drop_unread(ir::Model& model) {
  std::vector<ir::Operator>& operators = model.subgraphs[0].operators;
  std::vector<bool> is_read(model.subgraphs[0].tensors.size(), false);
  for (const std::int32_t t : model.subgraphs[0].outputs) is_read[static_cast<std::size_t>(t)] = true;
  std::vector<bool> stays(operators.size(), false);
  for (std::size_t i = operators.size(); i-- > 0;) {
    const ir::Operator& op = operators[i];
    stays[i] = op.outputs.empty() || std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t t) {
                 return t >= 0 && is_read[static_cast<std::size_t>(t)];
               });
    if (!stays[i]) continue;
    for (const std::int32_t t : op.inputs) {
      if (t >= 0) is_read[static_cast<std::size_t>(t)] = true;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (!stays[i]) continue;
    if (kept != i) operators[kept] = std::move(operators[i]);
    ++kept;
  }
  operators.resize(kept);
}

bool is_own_constant(const ir::Model& model, const ir::Uses& uses, std::int32_t tensor) {
  return tensor >= 0 && is_float_constant(model, model.subgraphs[0].tensors[static_cast<std::size_t>(tensor)]) &&
         uses.has_one_use(tensor);
}

}  // namespace reef::quantize
