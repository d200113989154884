// SPDX-License-Identifier: Apache-2.0
// Operators that work along the last axis, or the last two, and do not care how the others are ordered; and RESHAPE.
//
// A RESHAPE that flattens a map in front of FULLY_CONNECTED layers takes any layout of the map: the columns of their
// weights are put into the order in which the elements then come.
#include <algorithm>

#include "ops/registry.h"
#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/float/reshape_axes.h"

namespace reef::passes {
namespace {

constexpr std::size_t kLastAxisData[] = {0};

bool keeps_last(const Layout& layout, int rank, int count) {
  if (rank < count || static_cast<int>(layout.size()) < count) return false;
  for (int i = 1; i <= count; ++i) {
    if (layout[layout.size() - static_cast<std::size_t>(i)] != rank - i) return false;
  }
  return true;
}

void apply_nothing(Graph&, OpId, const Relayout&) {}

// ---- SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION ----
bool complete_along_last(const Graph& graph, OpId op, Relayout& wanted) {
  return same_layout(wanted, graph, op, kLastAxisData) &&
         keeps_last(*wanted.inputs[0], graph.shape(graph.op(op).inputs[0]).rank(), 1);
}

// ---- FULLY_CONNECTED that keeps its input's leading axes ----
bool complete_fully_connected(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  if (!it.attributes.get_bool("keep_num_dims") || it.outputs.size() != 1) return false;
  return same_layout(wanted, graph, op, kLastAxisData) && wanted.inputs[0]->size() > 1 &&
         keeps_last(*wanted.inputs[0], graph.shape(it.inputs[0]).rank(), 1);
}

// ---- BATCH_MATMUL: any order of the batches ----
bool complete_batch_matmul(const Graph& graph, OpId op, Relayout& wanted) {
  constexpr std::size_t kBoth[] = {0, 1};
  return same_layout(wanted, graph, op, kBoth) &&
         keeps_last(*wanted.inputs[0], graph.shape(graph.op(op).inputs[0]).rank(), 2);
}

// ---- CONV_2D of single pixels: rows and columns may change places; the batch stays first ----
bool complete_pointwise(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const ir::Shape &x = graph.shape(it.inputs[0]), &weights = graph.shape(it.inputs[1]);
  const bool is_pointwise = x.rank() == 4 && weights.rank() == 4 && weights[1] == 1 && weights[2] == 1 &&
                            it.attributes.get_int("stride_w") == 1 && it.attributes.get_int("stride_h") == 1;
  return is_pointwise && same_layout(wanted, graph, op, kLastAxisData) && wanted.inputs[0]->size() == 4 &&
         keeps_last(*wanted.inputs[0], 4, 1) && (*wanted.inputs[0])[0] == 0;
}

// ---- RESHAPE ----

// The constant behind weights, which may be stored in fewer bits: DEQUANTIZE of a constant. kNone: there is none.
TensorId stored_weights(const Graph& graph, TensorId weights) {
  if (graph.is_constant(weights)) return weights;
  const OpId dequantize = made_by(graph, weights, Op::DEQUANTIZE);
  if (dequantize == kNone || !graph.is_constant(graph.op(dequantize).inputs[0])) return kNone;
  return graph.op(dequantize).inputs[0];
}

// They are a matrix with so many columns, which can be put into another order.
bool has_columns(const Graph& graph, TensorId weights, std::int32_t count) {
  const TensorId stored = stored_weights(graph, weights);
  if (stored == kNone || graph.shape(stored) != graph.shape(weights)) return false;
  const ir::Shape& shape = graph.shape(stored);
  const ir::Quantization& quantization = graph.tensor(stored).quantization;
  return shape.rank() == 2 && shape[1] == count && ir::bits_per_element(graph.tensor(stored).type) >= 8 &&
         !(quantization.is_per_axis() && quantization.dimension != 0);
}

// The FULLY_CONNECTED operators that read a flattened map, and nothing else does but functions of single elements on
// the way there. Empty: somebody else reads it.
std::vector<OpId> dense_readers(const Graph& graph, TensorId flat) {
  std::vector<OpId> result;
  std::vector<TensorId> open = {flat};
  while (!open.empty()) {
    const TensorId tensor = open.back();
    open.pop_back();
    if (graph.is_graph_output(tensor) || graph.tensor(tensor).quantization.is_per_axis()) return {};
    for (const OpId user : graph.users(tensor)) {
      if (!graph.is_sound(user)) return {};
      const ir::Operator& op = graph.op(user);
      const std::string& type = op.type;
      if (ops::form_of(op) == ops::Form::kUnary) {
        open.push_back(op.outputs[0]);
        continue;
      }
      const bool is_dense = type == Op::FULLY_CONNECTED && op.inputs[0] == tensor && op.inputs[1] != tensor &&
                            op.attributes.get_enum("weights_format", "DEFAULT") == "DEFAULT" &&
                            has_columns(graph, op.inputs[1], graph.shape(flat).last());
      if (!is_dense) return {};
      if (std::find(result.begin(), result.end(), user) == result.end()) result.push_back(user);
    }
  }
  return result;
}

// In this order of fine axes, the last axis of the result is a permutation of itself and the others are as they were.
bool flattens(const ReshapeAxes& axes, const std::vector<int>& order) {
  const Run last = axes.to.back();
  if (last.count == 0 || axes.is_part_of_one[at(last.first)]) return false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_leading = static_cast<int>(i) < last.first;
    if (is_leading ? order[i] != static_cast<int>(i) : order[i] < last.first) return false;
  }
  return true;
}

bool complete_reshape(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Shape& from = graph.shape(graph.op(op).inputs[0]);
  const ir::Shape& to = graph.shape(graph.op(op).outputs[0]);
  if (from.elements() != to.elements() || !only_first_given(wanted)) return false;
  if (!wanted.inputs[0] && !wanted.outputs[0]) return false;
  const ReshapeAxes axes = reshape_axes(from, to);
  if (!wanted.inputs[0]) {
    const auto order = fine_order(axes, axes.to, *wanted.outputs[0]);
    if (!order) return false;
    wanted.inputs[0] = matching_layout(axes, axes.from, *order);
    return wanted.inputs[0].has_value();
  }
  const auto order = fine_order(axes, axes.from, *wanted.inputs[0]);
  if (!order) return false;
  const auto match = matching_layout(axes, axes.to, *order);
  if (wanted.outputs[0]) return match && fine_order(axes, axes.to, *wanted.outputs[0]) == order;
  if (match) {
    wanted.outputs[0] = match;
    return true;
  }
  // The result stays as it is but for the order of its elements.
  return to.rank() > 0 && flattens(axes, *order) && !dense_readers(graph, graph.op(op).outputs[0]).empty();
}

void permute_columns(Graph& graph, OpId dense, const ir::Shape& fine, const Layout& order) {
  const TensorId weights = graph.op(dense).inputs[1], stored = stored_weights(graph, weights);
  ir::Shape split = {graph.shape(stored)[0]};
  Layout layout = {0};
  for (int i = 0; i < fine.rank(); ++i) {
    split.push_back(fine[i]);
    layout.push_back(order[at(i)] + 1);
  }
  ir::Tensor made = graph.tensor(stored);
  const auto element_bytes = static_cast<std::size_t>(ir::bits_per_element(made.type) / 8);
  std::vector<std::uint8_t> data =
      rearranged(ir::constant_data(graph.model(), made).span(), split, element_bytes, layout);
  TensorId result = graph.add_constant(std::move(made), std::move(data));
  if (stored != weights) {
    const ir::Shape shape = graph.shape(weights);
    const TensorId unpacked = graph.add_like(weights, shape);
    graph.add_op(graph.producer(weights), Op::DEQUANTIZE, "DequantizeOptions", {}, {result}, {unpacked});
    result = unpacked;
  }
  graph.set_input(dense, 1, result);
}

void apply_reshape(Graph& graph, OpId op, const Relayout& layouts) {
  const ir::Shape from = graph.shape(graph.op(op).inputs[0]), to = graph.shape(graph.op(op).outputs[0]);
  if (layouts.outputs[0]) {
    const ir::Shape result = laid_out(to, *layouts.outputs[0]);
    const TensorId x = graph.op(op).inputs[0];
    // TensorFlow's converter writes RESHAPE without options; attributes need them.
    ir::Attributes attributes;
    attributes.set("new_shape", std::vector<std::int64_t>(result.begin(), result.end()));
    graph.become(op, Op::RESHAPE, "ReshapeOptions", std::move(attributes),
                 {x, graph.add_ints({result.begin(), result.end()})});
    return;
  }
  const ReshapeAxes axes = reshape_axes(from, to);
  const std::vector<int> order = *fine_order(axes, axes.from, *layouts.inputs[0]);
  const Run last = axes.to.back();
  ir::Shape fine;
  Layout columns;
  for (int i = 0; i < last.count; ++i) {
    fine.push_back(static_cast<std::int32_t>(axes.sizes[at(last.first + i)]));
    columns.push_back(order[at(last.first + i)] - last.first);
  }
  for (const OpId dense : dense_readers(graph, graph.op(op).outputs[0])) permute_columns(graph, dense, fine, columns);
}

constexpr LayoutRule kAlongLast = {complete_along_last, apply_nothing};
constexpr LayoutRule kFullyConnected = {complete_fully_connected, apply_nothing};
constexpr LayoutRule kBatchMatmul = {complete_batch_matmul, apply_nothing};
constexpr LayoutRule kPointwise = {complete_pointwise, apply_nothing};

}  // namespace

constinit const LayoutRule kReshapeRule = {complete_reshape, apply_reshape};

const LayoutRule* find_last_axis_rule(std::string_view type) {
  if (type == Op::SOFTMAX || type == Op::LOG_SOFTMAX || type == Op::L2_NORMALIZATION) return &kAlongLast;
  if (type == Op::FULLY_CONNECTED) return &kFullyConnected;
  if (type == Op::BATCH_MATMUL) return &kBatchMatmul;
  if (type == Op::CONV_2D) return &kPointwise;
  return nullptr;
}

}  // namespace reef::passes
