// SPDX-License-Identifier: Apache-2.0
#include "quantize/graph_constants.h"

#include "base/at.h"
#include "ir/compact.h"
#include "ir/needed_operators.h"

namespace reef::quantize {

void drop_unread(ir::Model& model) {
  ir::squeeze(model.subgraphs[0].operators, ir::needed_operators(model.subgraphs[0]));
}

bool is_own_constant(const ir::Model& model, const ir::Uses& uses, std::int32_t tensor) {
  return tensor >= 0 && is_float_constant(model, model.subgraphs[0].tensors[at(tensor)]) && uses.has_one_use(tensor);
}

}  // namespace reef::quantize
