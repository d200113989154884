// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are all constant are computed now, by the very kernels that would compute them later:
// transposed weights that quantization-aware training leaves in front of TRANSPOSE_CONV, shapes computed from shapes,
// constants that are quantized while the model runs.
//
// A constant is folded together with all operators that lead to it, so that no floating-point constant is stored where
// an 8-bit one becomes of it. Results that are floating point stay computed: storing them would only make the file
// larger.
#include <algorithm>
#include <cstring>
#include <set>

#include "ir/excerpt.h"
#include "ops/registry.h"
#include "passes/chip/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

bool is_computable(const GraphEdit& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || !ops::check_arity(*definition, op).ok()) return false;
  if (op.type == "WHILE" || op.type == "IF" || op.type == "CALL_ONCE" || !op.intermediates.empty()) return false;
  return std::all_of(op.outputs.begin(), op.outputs.end(), [](std::int32_t tensor) { return tensor >= 0; });
}

// SHAPE and RANK of a tensor whose shape is fixed: known without its values.
std::optional<std::vector<std::uint8_t>> value_from_shape(const GraphEdit& edit, const ir::Operator& op) {
  if ((op.type != "SHAPE" && op.type != "RANK") || op.inputs.size() != 1 || op.inputs[0] < 0) return {};
  if (!edit.is_static(op.inputs[0])) return {};
  const ir::Shape& shape = edit.shape(op.inputs[0]);
  std::vector<std::int64_t> values(shape.begin(), shape.end());
  if (op.type == "RANK") values = {shape.rank()};
  const ir::DataType type = edit.tensor(op.outputs[0]).type;
  if (type != ir::DataType::kInt32 && type != ir::DataType::kInt64) return {};
  const std::size_t size = type == ir::DataType::kInt32 ? 4 : 8;
  std::vector<std::uint8_t> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);  // little-endian
  return bytes;
}

// Gathers the operators that compute `tensor` from constants alone, in order. False: it depends on something else.
bool gather(const GraphEdit& edit, std::int32_t tensor, std::set<std::int32_t>& ops) {
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

std::optional<std::vector<std::vector<std::uint8_t>>> compute(const GraphEdit& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (auto value = value_from_shape(edit, op)) return {{*std::move(value)}};
  std::set<std::int32_t> ops;
  for (const std::int32_t output : op.outputs) {
    if (!gather(edit, output, ops)) return {};
  }
  if (!edit.options().evaluate) return {};
  std::vector<ir::Operator> operators;
  for (const std::int32_t each : ops) operators.push_back(edit.op(each));
  auto results = edit.options().evaluate(ir::excerpt(edit.model(), operators, op.outputs), {});
  if (!results.ok() || results->size() != op.outputs.size()) return {};
  return *std::move(results);
}

bool is_worth_folding(const GraphEdit& edit, const ir::Operator& op) {
  return std::all_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t output) {
    const ir::Tensor& tensor = edit.tensor(output);
    const auto bytes = ir::byte_size(tensor.shape, tensor.type);
    return bytes && *bytes <= kMostBytes && tensor.type != ir::DataType::kFloat32 &&
           tensor.type != ir::DataType::kFloat16 && tensor.type != ir::DataType::kFloat64 &&
           !edit.is_graph_output(output);
  });
}

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.outputs.empty() || !is_computable(edit, index) || !is_worth_folding(edit, op)) return false;
  // Most operators have an operand that is computed from the model's inputs: seen at once.
  for (const std::int32_t input : op.inputs) {
    const bool only_shape = op.type == "SHAPE" || op.type == "RANK";
    if (input >= 0 && !only_shape && edit.varies(input)) return false;
  }
  auto values = compute(edit, index);
  if (!values) return false;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::Tensor& tensor = edit.tensor(op.outputs[i]);
    // The file may have the shape wrong, as for results whose size depends on values.
    if ((*values)[i].size() != static_cast<std::size_t>(*ir::byte_size(tensor.shape, tensor.type))) return false;
  }
  edit.commit_anyway(index, {}, "a constant");
  ir::Model& model = edit.change();
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    ir::Tensor& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(op.outputs[i])];
    tensor.shape_signature.clear();
    tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
    ir::Buffer buffer;
    buffer.is_empty_constant = (*values)[i].empty();
    buffer.data = Bytes(std::move((*values)[i]));
    model.buffers.push_back(std::move(buffer));
  }
  return true;
}

}  // namespace

extern const Rewrite fold_constants_rewrite;
constinit const Rewrite fold_constants_rewrite = {
    .info = {.name = "fold-constants",
             .summary = "Operators whose operands are all constant (transposed weights, computed shapes) are computed "
                        "once, here.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite
