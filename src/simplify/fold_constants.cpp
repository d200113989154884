// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are all constant are computed now, by the interpreter's kernels; so are SHAPE and RANK.
//
// Left alone: DEQUANTIZE of integers, because a quantizer wants to see what was quantized (float16 weights are
// unpacked); and what grows a lot, as TILE and FILL can, because the file would.
#include <algorithm>
#include <cstring>

#include "execute/cpu/interpreter.h"
#include "ops/registry.h"
#include "simplify/layout_rules.h"
#include "simplify/pass.h"

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

// The operator as a model of its own; its operands are constant.
Result<std::vector<std::vector<std::uint8_t>>> compute(const Graph& graph, const ir::Operator& op) {
  ir::Model model;
  model.buffers.resize(1);
  model.subgraphs.resize(1);
  ir::Subgraph& alone = model.subgraphs[0];
  ir::Operator copy = op;
  const auto take = [&](TensorId& id) {
    if (id < 0) return;
    ir::Tensor tensor = graph.tensor(id);
    if (tensor.buffer != 0) {
      model.buffers.push_back(graph.model().buffers[static_cast<std::size_t>(tensor.buffer)]);  // shares the data
      tensor.buffer = static_cast<std::int32_t>(model.buffers.size()) - 1;
    }
    alone.tensors.push_back(std::move(tensor));
    id = static_cast<TensorId>(alone.tensors.size()) - 1;
  };
  for (TensorId& input : copy.inputs) take(input);
  for (TensorId& output : copy.outputs) take(output);
  alone.outputs = copy.outputs;
  alone.operators.push_back(std::move(copy));
  REEF_ASSIGN_OR_RETURN(const auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model))));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  std::vector<std::vector<std::uint8_t>> results;
  for (int i = 0; i < interpreter->output_count(); ++i) {
    const std::span<const std::uint8_t> values = interpreter->output(i).values<std::uint8_t>();
    results.emplace_back(values.begin(), values.end());
  }
  return results;
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
  const auto values = compute(graph, op);
  if (!values.ok() || values->size() != op.outputs.size()) return false;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(op.outputs[i]);
    if ((*values)[i].size() != static_cast<std::size_t>(*ir::byte_size(tensor.shape, tensor.type))) return false;
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    ir::Tensor tensor = graph.tensor(op.outputs[i]);
    graph.replace(op.outputs[i], graph.add_constant(std::move(tensor), (*values)[i]));
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
