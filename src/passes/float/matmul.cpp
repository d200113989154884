// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL by a constant matrix becomes FULLY_CONNECTED, which has a bias to fold into and runs on the Edge TPU
// once quantized. A TRANSPOSE that swaps the last two axes of an operand becomes a flag of BATCH_MATMUL. Exact for the
// flag; sums may be added up in another order by another kernel.
#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// The TRANSPOSE in front of an operand, and what only quantizes in between (from the operand upwards).
struct Path {
  OpId transpose = kNone;
  std::vector<OpId> between;
};
Path path_to_transpose(const Graph& graph, TensorId operand) {
  Path path;
  for (TensorId tensor = operand;;) {
    const OpId op = graph.producer(tensor);
    if (op == kNone || !graph.is_sound(op)) return {};
    if (graph.is(op, Op::TRANSPOSE)) {
      path.transpose = op;
      return path;
    }
    const bool only_quantizes = graph.is(op, Op::QUANTIZE) || graph.is(op, Op::DEQUANTIZE);
    if (!only_quantizes || !graph.has_one_user(tensor) || graph.tensor(tensor).quantization.is_per_axis()) return {};
    path.between.push_back(op);
    tensor = graph.op(op).inputs[0];
  }
}

// A TRANSPOSE of the second operand, as attention has for its keys, that breaks up the rows of its operand where one
// with the flag would keep them: it is then the same as those of queries and values, and moves whole rows.
bool keeps_rows(const Graph& graph, OpId transpose, const Layout& with_flag) {
  const ir::Shape& shape = graph.shape(graph.op(transpose).inputs[0]);
  return with_flag.back() == shape.rank() - 1 && shape.last() != 1 &&
         graph.has_one_user(graph.op(transpose).outputs[0]);
}

bool absorb_transpose(Graph& graph, OpId id, std::size_t input, std::string_view flag) {
  const Path path = path_to_transpose(graph, graph.op(id).inputs[input]);
  if (path.transpose == kNone || graph.op(id).inputs[0] == graph.op(id).inputs[1]) return false;
  const auto layout = conversion_of(graph, path.transpose);
  TensorId source = graph.op(path.transpose).inputs[0];
  if (!layout || graph.shape(source).rank() < 2) return false;
  Layout with_flag = *layout;
  std::swap(with_flag[with_flag.size() - 1], with_flag[with_flag.size() - 2]);
  if (!is_identity(with_flag, graph.shape(source))) {
    if (input != 1 || !keeps_rows(graph, path.transpose, with_flag)) return false;
    source = graph.convert(path.transpose, source, with_flag);
  }
  const ir::Shape shape = graph.shape(source);
  for (auto op = path.between.rbegin(); op != path.between.rend(); ++op) {
    const TensorId result = graph.add_like(graph.op(*op).outputs[0], shape);
    graph.set_inputs(*op, {source});
    graph.set_outputs(*op, {result});
    source = result;
  }
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
  TensorId x = op.inputs[0];
  const TensorId y = op.outputs[0];
  if (!graph.is_constant(op.inputs[1]) || graph.is_constant(x)) return false;
  if (!is_float(graph, x) || !is_float(graph, op.inputs[1]) || !is_float(graph, y)) return false;
  if (graph.shape(x).rank() != graph.shape(y).rank() || graph.shape(x).rank() < 2) return false;
  const auto weights = weights_of(graph, id);
  if (!weights) return false;
  if (op.attributes.get_bool("adj_x")) {
    Layout swapped = identity_layout(graph.shape(x).rank());
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    x = graph.convert(id, x, swapped);
  }
  const bool keeps = graph.shape(x).rank() > 2;
  ir::Attributes attributes = activation_attributes("NONE");
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", keeps);
  graph.become(id, Op::FULLY_CONNECTED, "FullyConnectedOptions", std::move(attributes), {x, *weights, kNone});
  graph.set_type_version(id, keeps ? 5 : 1);
  return true;
}

bool matmul_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::BATCH_MATMUL)) return false;
  // A layer first: it takes no flag for its operand.
  return become_dense(graph, id) || absorb_transpose(graph, id, 0, "adj_x") || absorb_transpose(graph, id, 1, "adj_y");
}

}  // namespace

constinit const Pass matmul_float_pass = {
    .name = "matmul",
    .summary =
        "BATCH_MATMUL by a constant matrix becomes FULLY_CONNECTED; a swap of an operand's last two axes becomes "
        "`adj_x` or `adj_y`, also behind QUANTIZE and DEQUANTIZE; a TRANSPOSE of the second operand that breaks up "
        "rows becomes one that keeps them, with the flag.",
    .safety = Safety::kRounding,
    .at = matmul_at};

}  // namespace reef::passes
