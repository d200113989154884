// SPDX-License-Identifier: Apache-2.0
#include "ir/uses.h"

namespace reef::ir {

Uses::Uses(const Model& model, std::size_t subgraph) {
  size_for(model, subgraph);
  const std::vector<Operator>& operators = model.subgraphs[subgraph].operators;
  for (std::size_t i = 0; i < operators.size(); ++i) add(operators[i], static_cast<std::int32_t>(i));
}

Uses::Uses(const Model& model, std::span<const std::int32_t> operators, std::size_t subgraph) {
  size_for(model, subgraph);
  for (const std::int32_t op : operators) add(model.subgraphs[subgraph].operators[index(op)], op);
}

void Uses::size_for(const Model& model, std::size_t subgraph) {
  const Subgraph& graph = model.subgraphs[subgraph];
  const std::size_t count = graph.tensors.size();
  producers_.assign(count, -1);
  consumers_.resize(count);
  is_input_.assign(count, false);
  is_output_.assign(count, false);
  for (const std::int32_t tensor : graph.inputs) is_input_[index(tensor)] = true;
  for (const std::int32_t tensor : graph.outputs) {
    if (tensor >= 0) is_output_[index(tensor)] = true;
  }
  for (const Signature& signature : model.signatures) {
    if (static_cast<std::size_t>(signature.subgraph) != subgraph) continue;
    for (const SignatureTensor& output : signature.outputs) is_output_[index(output.tensor)] = true;
  }
}

void Uses::add(const Operator& op, std::int32_t number) {
  for (const std::int32_t tensor : op.outputs) {
    if (tensor >= 0) producers_[index(tensor)] = number;
  }
  for (const std::int32_t tensor : op.inputs) {
    if (tensor < 0) continue;
    std::vector<std::int32_t>& list = consumers_[index(tensor)];
    if (list.empty() || list.back() != number) list.push_back(number);
  }
}

void Uses::add_tensor() {
  producers_.push_back(-1);
  consumers_.emplace_back();
  is_input_.push_back(false);
  is_output_.push_back(false);
}

}  // namespace reef::ir
