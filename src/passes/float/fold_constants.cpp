// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are all constant are computed now, by the interpreter's kernels; so are SHAPE and RANK.
//
// Left alone: DEQUANTIZE of integers, because a quantizer wants to see what was quantized (float16 weights are
// unpacked); and what grows a lot, as TILE and FILL can, because the file would.
#include <algorithm>
#include <cstring>

#include "execute/cpu/evaluate.h"
#include "ir/excerpt.h"
#include "ops/registry.h"
#include "passes/float/layout_rules.h"
#include "passes/float/pass.h"

namespace reef::simplify {
namespace {

constexpr std::int64_t kSmall = 64 << 10, kMostGrowth = 4;  // bytes; times

bool is_worth_folding(const Graph& graph, const ir::Operator& op) {
  std::int64_t before = 0, after = 0;
  for (const TensorId input : op.inputs) {
    if (input >= 0) before += static_cast<std::int64_t>(ir::constant_data(graph.model(), graph.tensor(input)).size());
  }
  for (const TensorId output : op.outputs) {
    const auto bytes = ir::byte_size(graph.shape(output), graph.tensor(output).type);
    if (!bytes || graph.is_graph_output(output)) return false;
    after += *bytes;
  }
  if (op.type == "DEQUANTIZE" && graph.tensor(op.inputs[0]).type != ir::DataType::kFloat16) return false;
  return after <= std::max(kSmall, kMostGrowth * before);
}

bool fold_shape(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const TensorId y = op.outputs[0];
  if (graph.is_graph_output(y) || graph.tensor(y).type != ir::DataType::kInt32) return false;
  const ir::Shape& shape = graph.shape(op.inputs[0]);
  const TensorId value =
      op.type == "RANK" ? graph.add_ints({shape.rank()}, {}) : graph.add_ints({shape.begin(), shape.end()});
  if (graph.shape(value) != graph.shape(y)) return false;
  return graph.replace(y, value) != kNone;
}

// Constants that only move need no kernel, and a RESHAPE not even a copy.
bool fold_conversion(Graph& graph, OpId id) {
  const TensorId x = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  if (graph.is(id, "RESHAPE") && !graph.tensor(x).quantization.is_per_axis()) {
    if (graph.shape(x).elements() != graph.shape(y).elements()) return false;
    const ir::Shape shape = graph.shape(y);
    return graph.replace(y, graph.reshaped_constant(x, shape)) != kNone;
  }
  const auto layout = conversion_of(graph, id);
  if (!layout || !graph.can_lay_out(x, *layout)) return false;
  return graph.replace(y, graph.add_in_layout(x, *layout)) != kNone;
}

bool at(Graph& graph, OpId id) {
  const std::string type = graph.type(id);
  if (type == "SHAPE" || type == "RANK") return fold_shape(graph, id);
  const ir::Operator op = graph.op(id);
  const bool all_constant = std::all_of(op.inputs.begin(), op.inputs.end(),
                                        [&](TensorId input) { return input < 0 || graph.is_constant(input); });
  if (!all_constant || !is_worth_folding(graph, op)) return false;
  if ((type == "RESHAPE" || type == "TRANSPOSE") && fold_conversion(graph, id)) return true;
  auto values = graph.evaluator()(ir::excerpt(graph.model(), {&op, 1}, op.outputs, graph.subgraph()));
  if (!values.ok() || values->size() != op.outputs.size()) return false;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(op.outputs[i]);
    if ((*values)[i].bytes.size() != static_cast<std::size_t>(*ir::byte_size(tensor.shape, tensor.type))) return false;
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    ir::Tensor tensor = graph.tensor(op.outputs[i]);
    graph.replace(op.outputs[i], graph.add_constant(std::move(tensor), std::move((*values)[i].bytes)));
  }
  return true;
}

}  // namespace

extern const Pass fold_constants_pass;
constinit const Pass fold_constants_pass = {
    .name = "fold-constants",
    .summary = "Operators whose operands are all constant are computed now, and SHAPE and RANK of fixed shapes.",
    .at = at};

}  // namespace reef::simplify
