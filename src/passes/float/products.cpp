// SPDX-License-Identifier: Apache-2.0
// Products of two computed matrices, however they are written, as BATCH_MATMUL of at most four axes: what the rules of
// the Edge TPU, the quantizer and the search for attention know.
//
//   FULLY_CONNECTED with computed weights   torch.mm, F.linear and ONNX's Gemm of two activations
//   five axes or more                       heads in groups of their own: [batch, groups, heads, tokens, channels]
//
// Leading axes become one, behind the first. An operand that has fewer matrices (keys of a group that several heads
// share) is repeated first, so that grouped heads look like those of networks that repeat their keys themselves; one
// that has a single matrix stays so. SOFTMAX of five axes, which stands between two such products, goes with them.
// Exact: every sum has the same terms in the same order; a bias is added behind the product.
#include "ops/registry.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr int kMostAxes = 4;

// [first, all others, rows, columns]
ir::Shape with_four_axes(const ir::Shape& batch, std::int32_t rows, std::int32_t columns) {
  const auto others = static_cast<std::int32_t>(batch.product(1, batch.rank()));
  return {batch[0], others, rows, columns};
}

ir::Shape leading(const ir::Shape& shape) {
  ir::Shape result;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis) result.push_back(shape[axis]);
  return result;
}

TensorId reshaped(Graph& graph, OpId id, TensorId tensor, ir::Shape shape) {
  return graph.is_constant(tensor) ? graph.reshaped_constant(tensor, std::move(shape))
                                   : graph.reshape(id, tensor, std::move(shape));
}

// An operand of a product whose result has the leading axes `batch`.
TensorId operand_of(Graph& graph, OpId id, TensorId tensor, const ir::Shape& batch) {
  const ir::Shape shape = graph.shape(tensor);
  const ir::Shape own = leading(shape);
  if (own.elements() == 1) return reshaped(graph, id, tensor, {1, 1, shape.last(1), shape.last()});
  if (own.elements() != batch.elements()) {
    ir::Shape full = batch;
    full.push_back(shape.last(1));
    full.push_back(shape.last());
    const TensorId repeated = graph.add_like(tensor, full);
    graph.add_op(id, Op::BROADCAST_TO, "BroadcastToOptions", {}, {tensor, graph.add_ints({full.begin(), full.end()})},
                 {repeated});
    tensor = repeated;
  }
  return reshaped(graph, id, tensor, with_four_axes(batch, shape.last(1), shape.last()));
}

// `made` instead of the operator, whose result is seen as having `shape`.
void replace(Graph& graph, OpId id, OpName type, std::vector<TensorId> inputs, const ir::Shape& shape) {
  const ir::Operator op = graph.op(id);
  const TensorId y = op.outputs[0];
  const TensorId made = graph.add_like(y, shape);
  graph.remove(id);
  graph.add_op(id, type, op.options_type, op.attributes, std::move(inputs), {made});
  graph.reshape(id, made, graph.shape(y), y);
}

bool has_few_axes(Graph& graph, OpId id) {
  const ir::Operator op = graph.op(id);
  const ir::Shape result = graph.shape(op.outputs[0]);
  if (result.rank() <= kMostAxes || result.elements() <= 0) return false;
  const ir::Shape batch = leading(result);
  const ir::Shape merged = with_four_axes(batch, result.last(1), result.last());
  if (op.type == Op::SOFTMAX) {
    replace(graph, id, op.type, {reshaped(graph, id, op.inputs[0], merged)}, merged);
    return true;
  }
  if (graph.shape(op.inputs[0]).rank() < 2 || graph.shape(op.inputs[1]).rank() < 2) return false;
  const TensorId x = operand_of(graph, id, op.inputs[0], batch), y = operand_of(graph, id, op.inputs[1], batch);
  replace(graph, id, op.type, {x, y}, merged);
  return true;
}

// Weights that a quantizer has left its marks on, or that are stored in another type.
bool is_from_constant(const Graph& graph, TensorId tensor) {
  constexpr int kMostSteps = 8;
  for (int step = 0; step < kMostSteps; ++step) {
    if (graph.is_constant(tensor)) return true;
    const OpId maker = graph.producer(tensor);
    if (maker == kNone) return false;
    const ir::Operator& op = graph.op(maker);
    const bool converts = ops::form_of(op) == ops::Form::kUnary || is_one_of(op.type, {Op::TRANSPOSE, Op::DENSIFY});
    if (!converts && !ops::has_same_bytes(op)) return false;
    tensor = graph.op(maker).inputs[0];
    if (tensor < 0) return false;
  }
  return true;
}

bool becomes_product(Graph& graph, OpId id) {
  const ir::Operator op = graph.op(id);
  const TensorId y = op.outputs[0];
  if (is_from_constant(graph, op.inputs[1]) || !is_float(graph, op.inputs[0]) || !is_float(graph, op.inputs[1]))
    return false;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE" ||
      op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") {
    return false;
  }
  const ir::Shape weights = graph.shape(op.inputs[1]), result = graph.shape(y);
  const std::int64_t elements = graph.shape(op.inputs[0]).elements();
  if (weights.rank() != 2 || weights.elements() <= 0 || elements <= 0 || elements % weights[1] != 0) return false;
  const auto rows = static_cast<std::int32_t>(elements / weights[1]);
  const TensorId a = reshaped(graph, id, op.inputs[0], {1, rows, weights[1]});
  const TensorId b = graph.reshape(id, op.inputs[1], {1, weights[0], weights[1]});
  const TensorId product = graph.add_like(y, {1, rows, weights[0]});
  ir::Attributes by_rows;
  by_rows.set("adj_y", true);
  graph.remove(id);
  graph.add_op(id, Op::BATCH_MATMUL, "BatchMatMulOptions", std::move(by_rows), {a, b}, {product});
  if (op.inputs.size() < 3 || op.inputs[2] < 0) {
    graph.reshape(id, product, result, y);
    return true;
  }
  const TensorId sum = graph.add_like(y, {1, rows, weights[0]});
  graph.add_op(id, Op::ADD, "AddOptions", activation_attributes("NONE"), {product, op.inputs[2]}, {sum});
  graph.reshape(id, sum, result, y);
  return true;
}

bool products_at(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  if (!graph.is_sound(id) || op.outputs.empty() || !is_float(graph, op.outputs[0])) return false;
  if (op.type == Op::FULLY_CONNECTED) return becomes_product(graph, id);
  return (op.type == Op::BATCH_MATMUL || op.type == Op::SOFTMAX) && has_few_axes(graph, id);
}

}  // namespace

constinit const Pass products_float_pass = {
    .name = "products",
    .summary =
        "FULLY_CONNECTED whose weights are computed becomes BATCH_MATMUL; BATCH_MATMUL and SOFTMAX of five axes or "
        "more get four, an operand that has fewer matrices than the result repeated.",
    .safety = Safety::kRounding,
    .at = products_at};

}  // namespace reef::passes
