// SPDX-License-Identifier: Apache-2.0
// Sweeping up: operators whose results nobody reads, tensors and buffers that nothing refers to.
#include <algorithm>

#include "ir/compact.h"
#include "ops/registry.h"
#include "passes/chip/graph_edit.h"

namespace reef::rewrite {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Without an effect beside its outputs, as far as this version knows.
bool has_no_effect(const GraphEdit& edit, const ir::Operator& op) {
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || op.type == "WHILE" || op.type == "IF") return false;
  return std::none_of(op.inputs.begin(), op.inputs.end(),
                      [&](std::int32_t input) { return input >= 0 && edit.tensor(input).is_variable; });
}

}  // namespace

void GraphEdit::remove_dead() {
  ir::Subgraph& graph = model_->subgraphs[0];
  std::vector<bool> is_read(graph.tensors.size(), false), keep(graph.operators.size(), false);
  const auto read = [&](std::int32_t tensor) {
    if (tensor >= 0) is_read[at(tensor)] = true;
  };
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_graph_output(static_cast<std::int32_t>(i))) is_read[i] = true;
  }
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    keep[i] = !has_no_effect(*this, op) || std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t output) {
      return output >= 0 && is_read[at(output)];
    });
    if (keep[i]) std::for_each(op.inputs.begin(), op.inputs.end(), read);
  }
  if (std::all_of(keep.begin(), keep.end(), [](bool kept) { return kept; })) return;
  ir::squeeze(graph.operators, keep);
  ir::squeeze(origins_, keep);
  std::optional<std::vector<bool>> fits = std::move(fits_);
  forget();
  if (!fits) return;
  ir::squeeze(*fits, keep);
  fits_ = std::move(fits);
}

void GraphEdit::compact() {
  ir::Model& model = change();
  ir::drop_unused_tensors(model, 0);
  ir::drop_unused_buffers(model);
}

}  // namespace reef::rewrite
