// SPDX-License-Identifier: Apache-2.0
// Operators that give back what they are given: RESHAPE to the same shape, CAST to the same type, full SLICE, PAD by
// nothing, TILE by one, x * 1, x + 0, windows of one element, a second RELU.
#include <algorithm>

#include "ops/registry.h"
#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool all_are(const std::optional<std::vector<std::int64_t>>& values, std::int64_t wanted) {
  return values && std::all_of(values->begin(), values->end(), [&](std::int64_t value) { return value == wanted; });
}

// x + 0, x - 0, x * 1, x / 1, x ^ 1
bool is_neutral(const Graph& graph, OpId id) {
  const std::string& type = graph.type(id);
  const auto parts = with_number(graph, id);
  if (!parts || !has_no_activation(graph, id)) return false;
  if (type == Op::ADD) return parts->number == 0;
  if (type == Op::MUL) return parts->number == 1;
  if (parts->number_first) return false;
  if (type == Op::SUB) return parts->number == 0;
  return (type == Op::DIV || type == Op::POW) && parts->number == 1;
}

// The range that the values of a tensor are known to lie in, from the operator that computes it.
bool is_within(const Graph& graph, TensorId tensor, std::string_view function) {
  const OpId op = graph.producer(tensor);
  if (op == kNone) return false;
  const std::string_view fused = graph.op(op).attributes.get_enum("fused_activation_function", "NONE");
  const std::string_view made = fused != "NONE" ? fused : std::string_view(graph.type(op));
  if (function == "RELU") {
    return ops::has_trait(made, ops::Trait::kNeverNegative);
  }
  if (function == "RELU6")
    return made == "RELU6" || made == Op::RELU_0_TO_1 || made == Op::LOGISTIC || made == Op::SOFTMAX;
  return function == "RELU_N1_TO_1" && (made == "RELU_N1_TO_1" || made == "TANH" || made == Op::RELU_0_TO_1);
}

bool is_window_of_one(const Graph& graph, OpId id) {
  const ir::Attributes& attributes = graph.op(id).attributes;
  return attributes.get_int("filter_width") == 1 && attributes.get_int("filter_height") == 1 &&
         attributes.get_int("stride_w") == 1 && attributes.get_int("stride_h") == 1 && has_no_activation(graph, id);
}

// For operators whose result has the shape of their input.
bool gives_back(const Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const std::string& type = op.type;
  if (type == Op::RESHAPE || type == Op::BROADCAST_TO || type == Op::CAST || type == Op::SLICE) return true;
  if (type == Op::TRANSPOSE) {
    const auto layout = conversion_of(graph, id);
    return layout && is_identity(*layout, graph.shape(op.inputs[0]));
  }
  if (type == Op::STRIDED_SLICE) {
    // A slice of the same size with steps of 1 is the whole tensor.
    return all_are(graph.ints(op.inputs[3]), 1) && op.attributes.get_int("new_axis_mask") == 0 &&
           op.attributes.get_int("shrink_axis_mask") == 0;
  }
  if (type == Op::PAD || type == Op::PADV2 || type == Op::MIRROR_PAD) return all_are(graph.ints(op.inputs[1]), 0);
  if (type == Op::TILE) return all_are(graph.ints(op.inputs[1]), 1);
  if (type == Op::CONCATENATION) return op.inputs.size() == 1 && has_no_activation(graph, id);
  if (type == Op::SPLIT || type == Op::SPLIT_V) return op.outputs.size() == 1;
  if (type == Op::AVERAGE_POOL_2D || type == Op::MAX_POOL_2D) return is_window_of_one(graph, id);
  if (type == Op::RESIZE_BILINEAR || type == Op::RESIZE_NEAREST_NEIGHBOR) return true;
  if (type == Op::RELU || type == Op::RELU6 || type == Op::RELU_N1_TO_1) return is_within(graph, op.inputs[0], type);
  return is_neutral(graph, id);
}

TensorId data_operand(const Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  if (op.type == Op::SPLIT) return op.inputs[1];
  if (const auto parts = with_constant(graph, id); parts && op.inputs.size() == 2) return parts->x;
  return op.inputs[0];
}

bool no_ops_at(Graph& graph, OpId id) {
  const TensorId x = data_operand(graph, id), y = graph.op(id).outputs[0];
  const ir::Tensor& from = graph.tensor(x);
  const ir::Tensor& to = graph.tensor(y);
  if (from.shape != to.shape || from.type != to.type) return false;
  const bool same_numbers =
      from.quantization.scale == to.quantization.scale && from.quantization.zero_point == to.quantization.zero_point;
  if (!same_numbers || !gives_back(graph, id)) return false;
  return graph.replace(y, x) != kNone;
}

}  // namespace

constinit const Pass no_ops_float_pass = {
    .name = "no-ops",
    .summary =
        "RESHAPE to the same shape, CAST to the same type, full SLICE, PAD by "
        "nothing, TILE by one, x * 1, x + 0, a second RELU and the like are removed.",
    .at = no_ops_at};

}  // namespace reef::passes
