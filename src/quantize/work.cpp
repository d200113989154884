// SPDX-License-Identifier: Apache-2.0
#include "quantize/work.h"

#include <algorithm>

#include "ir/op.h"
#include "quantize/integer_lstm.h"
#include "quantize/op_rules.h"

namespace reef::quantize {
namespace {

constexpr double kWorkPerElement = 4;  // of an operator that is no layer, against one product of a layer; about

double elements_of(const ir::Subgraph& graph, std::int32_t t) {
  if (t < 0) return 0;
  return static_cast<double>(graph.tensors[at(t)].shape.checked_elements().value_or(0));
}

}  // namespace

double work_of(const ir::Model& model, const ir::Operator& op) {
  const ir::Subgraph& graph = model.subgraphs[0];
  double results = 0;
  for (const std::int32_t t : op.outputs) results += elements_of(graph, t);
  const OpRule* rule = rule_of(op.type);
  double products = kWorkPerElement;  // for each result
  if (rule != nullptr && rule->kind == RuleKind::kWeighted &&
      op.inputs.size() > static_cast<std::size_t>(rule->weights)) {
    const std::int32_t weights = op.inputs[at(rule->weights)];
    const ir::Shape* shape = weights < 0 ? nullptr : &graph.tensors[at(weights)].shape;
    if (shape != nullptr && shape->rank() > rule->channel_axis) {
      products += elements_of(graph, weights) / std::max(1, (*shape)[rule->channel_axis]);
    }
  } else if (rule != nullptr && rule->kind == RuleKind::kRecurrent) {
    for (std::size_t i = kLstmWeights; i < std::min(kLstmPeepholes, op.inputs.size()); ++i) {
      if (op.inputs[i] < 0) continue;
      const ir::Shape& shape = graph.tensors[at(op.inputs[i])].shape;
      if (shape.rank() == 2) products += shape[1];
    }
  } else if (op.type == Op::BATCH_MATMUL && op.inputs[0] >= 0) {
    const ir::Shape& shape = graph.tensors[at(op.inputs[0])].shape;
    if (shape.rank() >= 2) products += std::max(1, shape.last(op.attributes.get_bool("adj_x") ? 1 : 0));
  }
  return results * products;
}

double work_of(const ir::Model& model) {
  double sum = 0;
  for (const ir::Operator& op : model.subgraphs[0].operators) sum += work_of(model, op);
  return sum;
}

}  // namespace reef::quantize
