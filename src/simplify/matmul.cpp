// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL by a constant matrix becomes FULLY_CONNECTED, which has a bias to fold into and runs on the Edge TPU
// once quantized. A TRANSPOSE that swaps the last two axes of an operand becomes a flag of BATCH_MATMUL. Exact for the
// flag; sums may be added up in another order by another kernel.
#include "simplify/layout_rules.h"
#include "simplify/pass.h"
#include "simplify/patterns.h"

namespace reef::simplify {
namespace {

bool absorb_transpose(Graph& graph, OpId id, std::size_t input, std::string_view flag) {
  const TensorId x = graph.op(id).inputs[input];
  const OpId transpose = made_by(graph, x, "TRANSPOSE");
  if (transpose == kNone) return false;
  const auto layout = conversion_of(graph, transpose);
  const ir::Shape shape = graph.shape(x);
  if (!layout || shape.rank() < 2) return false;
  Layout swapped = identity_layout(shape.rank());
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  const TensorId source = graph.op(transpose).inputs[0];
  if (!is_same(*layout, swapped, graph.shape(source))) return false;
  graph.set_input(id, input, source);
  graph.set_attribute(id, flag, !graph.op(id).attributes.get_bool(flag));
  return true;
}

// The constant as rows of weights, [n, k]; nullopt: it has several matrices.
std::optional<TensorId> weights_of(Graph& graph, OpId id) {
  const TensorId constant = graph.op(id).inputs[1];
  const ir::Shape shape = graph.shape(constant);
  if (shape.rank() < 2 || shape.product(0, shape.rank() - 2) != 1) return std::nullopt;
  const TensorId matrix =
      shape.rank() == 2 ? constant : graph.reshaped_constant(constant, {shape.last(1), shape.last()});
  if (graph.op(id).attributes.get_bool("adj_y")) return matrix;
  return graph.add_in_layout(matrix, {1, 0});
}

bool become_dense(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const TensorId x = op.inputs[0], y = op.outputs[0];
  if (!graph.is_constant(op.inputs[1]) || graph.is_constant(x) || op.attributes.get_bool("adj_x")) return false;
  if (!is_float(graph, x) || !is_float(graph, op.inputs[1]) || !is_float(graph, y)) return false;
  if (graph.shape(x).rank() != graph.shape(y).rank() || graph.shape(x).rank() < 2) return false;
  const auto weights = weights_of(graph, id);
  if (!weights) return false;
  const bool keeps = graph.shape(x).rank() > 2;
  ir::Attributes attributes = activation_attributes("NONE");
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", keeps);
  graph.become(id, "FULLY_CONNECTED", "FullyConnectedOptions", std::move(attributes), {x, *weights, kNone});
  graph.set_type_version(id, keeps ? 5 : 1);
  return true;
}

bool at(Graph& graph, OpId id) {
  if (!graph.is(id, "BATCH_MATMUL")) return false;
  return absorb_transpose(graph, id, 0, "adj_x") || absorb_transpose(graph, id, 1, "adj_y") || become_dense(graph, id);
}

}  // namespace

extern const Pass matmul_pass;
constinit const Pass matmul_pass = {
    .name = "matmul",
    .summary = "BATCH_MATMUL by a constant becomes FULLY_CONNECTED; a swap of its operand's last axes becomes a flag.",
    .at = at};

}  // namespace reef::simplify
