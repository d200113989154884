// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are all constant are computed now, by the very kernels that would compute them later:
// transposed weights, shapes computed from shapes, constants that are quantized while the model runs. So are SHAPE and
// RANK of tensors whose shape is fixed.
//
// The stages differ in what is worth storing. In a float model one operator is folded at a time; left alone are
// DEQUANTIZE of integers, because a quantizer wants to see what was quantized (float16 weights are unpacked), and what
// grows a lot, as TILE and FILL can, because the file would. For the chip a constant is folded together with all
// operators that lead to it, so that no floating-point constant is stored where an 8-bit one becomes of it; results
// that are floating point stay computed, because storing them would only make the file larger.
#include <algorithm>
#include <cstring>
#include <set>

#include "ir/excerpt.h"
#include "ops/registry.h"
#include "passes/float/layout_rules.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// The file may have a shape wrong, as for results whose size depends on values.
bool have_declared_sizes(const Graph& graph, const ir::Operator& op, const std::vector<cpu::Value>& values) {
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(op.outputs[i]);
    const auto size = ir::byte_size(tensor.shape, tensor.type);
    if (!size || i >= values.size() || values[i].bytes.size() != static_cast<std::size_t>(*size)) return false;
  }
  return values.size() == op.outputs.size();
}

// ---- Float ----

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
  if (op.type == Op::DEQUANTIZE && graph.tensor(op.inputs[0]).type != ir::DataType::kFloat16) return false;
  return after <= std::max(kSmall, kMostGrowth * before);
}

bool fold_shape(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const TensorId y = op.outputs[0];
  if (graph.is_graph_output(y) || graph.tensor(y).type != ir::DataType::kInt32) return false;
  const ir::Shape& shape = graph.shape(op.inputs[0]);
  const TensorId value =
      op.type == Op::RANK ? graph.add_ints({shape.rank()}, {}) : graph.add_ints({shape.begin(), shape.end()});
  if (graph.shape(value) != graph.shape(y)) return false;
  return graph.replace(y, value) != kNone;
}

// Constants that only move need no kernel, and a RESHAPE not even a copy.
bool fold_conversion(Graph& graph, OpId id) {
  const TensorId x = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  if (graph.is(id, Op::RESHAPE) && !graph.tensor(x).quantization.is_per_axis()) {
    if (graph.shape(x).elements() != graph.shape(y).elements()) return false;
    const ir::Shape shape = graph.shape(y);
    return graph.replace(y, graph.reshaped_constant(x, shape)) != kNone;
  }
  const auto layout = conversion_of(graph, id);
  if (!layout || !graph.can_lay_out(x, *layout)) return false;
  return graph.replace(y, graph.add_in_layout(x, *layout)) != kNone;
}

bool fold_constants_at(Graph& graph, OpId id) {
  const std::string type = graph.type(id);
  if (type == Op::SHAPE || type == Op::RANK) return fold_shape(graph, id);
  const ir::Operator op = graph.op(id);
  const bool all_constant = std::all_of(op.inputs.begin(), op.inputs.end(),
                                        [&](TensorId input) { return input < 0 || graph.is_constant(input); });
  if (!all_constant || !is_worth_folding(graph, op)) return false;
  if ((type == Op::RESHAPE || type == Op::TRANSPOSE) && fold_conversion(graph, id)) return true;
  auto values = graph.evaluate()(ir::excerpt(graph.model(), {&op, 1}, op.outputs, graph.subgraph()), {});
  if (!values.ok()) return false;
  if (!have_declared_sizes(graph, op, *values)) return false;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    ir::Tensor tensor = graph.tensor(op.outputs[i]);
    graph.replace(op.outputs[i], graph.add_constant(std::move(tensor), std::move((*values)[i].bytes)));
  }
  return true;
}

// ---- Chip ----

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

bool is_computable(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || !ops::check_arity(*definition, op).ok()) return false;
  if (op.type == Op::WHILE || op.type == Op::IF || op.type == Op::CALL_ONCE || !op.intermediates.empty()) return false;
  return std::all_of(op.outputs.begin(), op.outputs.end(), [](std::int32_t tensor) { return tensor >= 0; });
}

// SHAPE and RANK of a tensor whose shape is fixed: known without its values.
std::optional<std::vector<std::uint8_t>> value_from_shape(const ChipGraph& edit, const ir::Operator& op) {
  if ((op.type != Op::SHAPE && op.type != Op::RANK) || op.inputs.size() != 1 || op.inputs[0] < 0) return {};
  if (!edit.is_static(op.inputs[0])) return {};
  const ir::Shape& shape = edit.shape(op.inputs[0]);
  std::vector<std::int64_t> values(shape.begin(), shape.end());
  if (op.type == Op::RANK) values = {shape.rank()};
  const ir::DataType type = edit.tensor(op.outputs[0]).type;
  if (type != ir::DataType::kInt32 && type != ir::DataType::kInt64) return {};
  const std::size_t size = type == ir::DataType::kInt32 ? 4 : 8;
  std::vector<std::uint8_t> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);  // little-endian
  return bytes;
}

// Gathers the operators that compute `tensor` from constants alone, in order. False: it depends on something else.
bool gather(const ChipGraph& edit, std::int32_t tensor, std::set<std::int32_t>& ops) {
  std::vector<std::int32_t> open = {tensor};
  while (!open.empty()) {
    const std::int32_t each = open.back();
    open.pop_back();
    if (each < 0 || edit.is_constant(each)) continue;
    const std::int32_t producer = edit.producer(each);
    if (producer < 0 || edit.tensor(each).is_variable || !is_computable(edit, producer)) return false;
    if (!ops.insert(producer).second) continue;
    const std::vector<std::int32_t>& inputs = edit.op(producer).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return true;
}

std::optional<std::vector<cpu::Value>> compute(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (auto value = value_from_shape(edit, op)) return {{{edit.shape(op.outputs[0]), *std::move(value)}}};
  std::set<std::int32_t> ops;
  for (const std::int32_t output : op.outputs) {
    if (!gather(edit, output, ops)) return {};
  }
  if (!edit.evaluate()) return {};
  std::vector<ir::Operator> operators;
  for (const std::int32_t each : ops) operators.push_back(edit.op(each));
  auto results = edit.evaluate()(ir::excerpt(edit.model(), operators, op.outputs), {});
  if (!results.ok()) return {};
  return *std::move(results);
}

bool is_worth_folding_on_chip(const ChipGraph& edit, const ir::Operator& op) {
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t output) {
    const ir::Tensor& tensor = edit.tensor(output);
    const auto bytes = ir::byte_size(tensor.shape, tensor.type);
    return bytes && *bytes <= kMostBytes && tensor.type != ir::DataType::kFloat32 &&
           tensor.type != ir::DataType::kFloat16 && tensor.type != ir::DataType::kFloat64 &&
           !edit.is_graph_output(output);
  });
}

bool fold_constants_at_on_chip(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.outputs.empty() || !is_computable(edit, index) || !is_worth_folding_on_chip(edit, op)) return false;
  // Most operators have an operand that is computed from the model's inputs: seen at once.
  for (const std::int32_t input : op.inputs) {
    const bool only_shape = op.type == Op::SHAPE || op.type == Op::RANK;
    if (input >= 0 && !only_shape && edit.varies(input)) return false;
  }
  auto values = compute(edit, index);
  if (!values) return false;
  if (!have_declared_sizes(edit, op, *values)) return false;
  edit.commit_anyway(index, {}, "a constant");
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    edit.change_tensor(op.outputs[i]).shape_signature.clear();
    edit.set_constant(op.outputs[i], std::move((*values)[i].bytes));
  }
  edit.forget();
  return true;
}

}  // namespace

constinit const Pass fold_constants_shape_pass = {
    .name = "fold-constants",
    .summary =
        "Operators whose operands are all constant (transposed weights, computed shapes) are computed once, here, "
        "and SHAPE and RANK of fixed shapes. Not what would grow beyond 64 KiB and four times its operands; before "
        "quantization not DEQUANTIZE of integers, after it no floating-point results.",
    .at = fold_constants_at,
    .at_on_chip = fold_constants_at_on_chip};

}  // namespace reef::passes
