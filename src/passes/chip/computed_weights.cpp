// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED whose weights are computed is the product of two activations: BATCH_MATMUL with adj_y, which the chip
// has. So some converters write attention.
//
// The sums are the same, and TFLite scales both by the same double; a bias or an activation would be a further step of
// rounding, so those are left alone.
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool computed_weights_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.type != Op::FULLY_CONNECTED || !edit.is_sound(index) || op.outputs.size() != 1) return false;
  const std::int32_t x = op.inputs[0], weights = op.inputs[1], y = op.outputs[0];
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2] >= 0;
  if (has_bias || !edit.varies(weights) || edit.is_constant(weights)) return false;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE" ||
      op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") {
    return false;
  }
  const auto in = edit.affine(x), by = edit.affine(weights), out = edit.affine(y);
  if (!in || !by || !out || in->type != ir::DataType::kInt8 || by->type != in->type || out->type != in->type) {
    return false;
  }
  const ir::Shape shape = edit.shape(weights);
  if (shape.rank() != 2 || shape[1] < 1 || edit.shape(x).elements() % shape[1] != 0) return false;
  const auto rows = static_cast<std::int32_t>(edit.shape(x).elements() / shape[1]);
  if (edit.shape(y).elements() != std::int64_t{rows} * shape[0]) return false;
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t matrix = edit.shape(x).rank() == 2 ? x : list.reshape(x, {rows, shape[1]});
  const bool is_matrix = edit.shape(y) == ir::Shape{rows, shape[0]};
  const std::int32_t result = is_matrix ? y : list.tensor_like(y, {rows, shape[0]});
  ir::Attributes attributes;
  attributes.set("adj_x", false);
  attributes.set("adj_y", true);
  attributes.set("asymmetric_quantize_inputs", false);
  list.add(Op::BATCH_MATMUL, "BatchMatMulOptions", std::move(attributes), {matrix, weights}, {result},
           ir::DataType::kInt8);
  if (!is_matrix) list.reshape(result, edit.shape(y), y);
  return edit.commit(index, list.take(), "a BATCH_MATMUL", 1);
}

}  // namespace

constinit const Pass computed_weights_chip_pass = {
    .name = "computed-weights",
    .summary = "FULLY_CONNECTED whose weights are computed becomes a BATCH_MATMUL.",
    .safety = Safety::kRounding,
    .at_on_chip = computed_weights_at};

}  // namespace reef::passes
