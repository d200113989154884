// SPDX-License-Identifier: Apache-2.0
// Nodes that ONNX Runtime's optimizer makes of several standard ones (domain com.microsoft): a product or convolution
// with its activation, normalizations with the sum before them, GELU with its bias. A file that was saved after
// optimization has them. Each is taken apart again: the standard part goes to the standard node's converter.
#include <limits>

#include "import/onnx/converters.h"
#include "import/onnx/recurrent.h"
#include "import/onnx/shared_parts.h"
#include "ir/op.h"

namespace reef::import {

namespace {

// The function that attribute activation names. Parameters are a list (FusedConv) or attributes of their own.
Result<Id> with_activation(NodeContext& ctx, Id y) {
  const std::string name = ctx.string_attribute("activation", "");
  if (name.empty()) return y;
  GraphBuilder& b = ctx.b;
  ActivationSpec spec = activation_of(name);
  const std::vector<float> parameters = ctx.floats_attribute("activation_params");
  const bool is_clip = spec.name == "clip";
  if (is_clip) {
    spec.alpha = std::numeric_limits<float>::lowest();
    spec.beta = std::numeric_limits<float>::max();
  }
  spec.alpha = !parameters.empty() ? parameters[0] : ctx.float_attribute("activation_alpha", spec.alpha);
  spec.beta = parameters.size() > 1 ? parameters[1] : ctx.float_attribute("activation_beta", spec.beta);
  if (is_clip) {
    const Id low = b.scalar(b.type(y), spec.alpha), high = b.scalar(b.type(y), spec.beta);
    return minimum(b, maximum(b, y, low), high);
  }
  return activate(b, spec, y);
}

// Input `input` with axes moved as attributes transA and transBatchA (or ...B) say.
Id matrix_operand(NodeContext& ctx, int input, std::string_view which) {
  GraphBuilder& b = ctx.b;
  const Id x = cast(b, ctx.in(input), ir::DataType::kFloat32);
  const int rank = b.rank(x);
  if (rank < 2) return x;
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  if (ctx.int_attribute(fmt::format("transBatch{}", which), 0) != 0) {
    order.erase(order.begin());
    order.insert(order.end() - 1, 0);
  }
  if (ctx.int_attribute(fmt::format("trans{}", which), 0) != 0) std::swap(order[order.size() - 1], *(order.end() - 2));
  return transpose(b, x, order);
}

// A standard normalization of `sum` with inputs of the node that follow it; outputs as the optimizer's nodes have them.
Status normalized(NodeContext& ctx, Converter normalization, Id sum, Id scale, Id bias) {
  std::vector<Value> inputs = {float_value(sum), float_value(scale)};
  if (bias != kAbsent) inputs.push_back(float_value(bias));
  NodeContext inner = ctx.with_inputs(std::move(inputs), kStandardOpset);
  REEF_RETURN_IF_ERROR(normalization(inner, inner.b));
  const std::vector<Value> outputs = inner.take_outputs();
  return ctx.give(outputs.at(0));
}

}  // namespace

// act(Conv(X, W, B) + Z)
Status convert_fused_conv(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Id y, convolution(ctx, ctx.in(0), ctx.in(1), ctx.in(2)));
  if (ctx.has(3)) y = add(b, y, ctx.in(3));
  REEF_ASSIGN_OR_RETURN(y, with_activation(ctx, y));
  return ctx.give(y);
}

Status convert_fused_gemm(NodeContext& ctx, GraphBuilder&) {
  std::vector<Value> inputs = {ctx.value(0), ctx.value(1)};
  if (ctx.has(2)) inputs.push_back(ctx.value(2));
  NodeContext gemm = ctx.with_inputs(std::move(inputs), kStandardOpset);
  REEF_RETURN_IF_ERROR(convert_gemm(gemm, gemm.b));
  REEF_ASSIGN_OR_RETURN(const Id y, with_activation(ctx, gemm.take_outputs().at(0).id));
  return ctx.give(y);
}

// alpha * A' * B'. transBatchA: A is [rows, batch..., columns].
Status convert_fused_matmul(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(b.rank(ctx.in(0)) >= 1 && b.rank(ctx.in(1)) >= 1, "an operand has no dimensions");
  Id y = matrix_product(b, matrix_operand(ctx, 0, "A"), matrix_operand(ctx, 1, "B"));
  if (const float alpha = ctx.float_attribute("alpha", 1); alpha != 1) y = mul(b, y, alpha);
  REEF_ASSIGN_OR_RETURN(y, with_activation(ctx, y));
  return ctx.give(y);
}

namespace {

Status gelu_of_sum(NodeContext& ctx, bool is_approximate) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  GraphBuilder& b = ctx.b;
  const Id x = ctx.has(1) ? add(b, ctx.in(0), ctx.in(1)) : ctx.in(0);
  ir::Attributes attributes;
  attributes.set("approximate", is_approximate);
  return ctx.give(b.emit(Op::GELU, {x}, b.type(x), std::move(attributes)));
}

}  // namespace

Status convert_bias_gelu(NodeContext& ctx, GraphBuilder&) { return gelu_of_sum(ctx, false); }
Status convert_fast_gelu(NodeContext& ctx, GraphBuilder&) { return gelu_of_sum(ctx, true); }

// x * sigmoid(alpha * x)
Status convert_quick_gelu(NodeContext& ctx, GraphBuilder& b) {
  const float alpha = ctx.float_attribute("alpha", 1.702f);
  const Id inner = alpha == 1 ? ctx.in(0) : mul(b, ctx.in(0), alpha);
  return ctx.give(mul(b, ctx.in(0), unary(b, Op::LOGISTIC, inner)));
}

// input + skip (+ bias), normalized. Output 3 is the sum.
Status convert_skip_layer_normalization(NodeContext& ctx, GraphBuilder& b) {
  Id sum = add(b, ctx.in(0), ctx.in(1));
  if (ctx.has(4)) sum = add(b, sum, ctx.in(4));
  if (ctx.wants(3)) ctx.out(3, sum);
  return normalized(ctx, convert_layer_normalization, sum, ctx.in(2), ctx.in(3));
}

Status convert_skip_simplified_layer_normalization(NodeContext& ctx, GraphBuilder& b) {
  Id sum = add(b, ctx.in(0), ctx.in(1));
  if (ctx.has(3)) sum = add(b, sum, ctx.in(3));
  if (ctx.wants(3)) ctx.out(3, sum);
  return normalized(ctx, convert_rms_normalization, sum, ctx.in(2), kAbsent);
}

// Words, positions and segments looked up, added and normalized. Inputs: ids, segments, the three tables, scale, bias,
// mask, position ids. Output 1: how many positions of each sequence the mask leaves.
Status convert_embed_layer_normalization(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(ctx.has(2) && ctx.has(3) && ctx.has(5) && ctx.has(6), "an embedding, gamma or beta is missing");
  const Id ids = cast(b, ctx.in(0), ir::DataType::kInt32);
  REEF_REQUIRE(b.rank(ids) == 2 && b.rank(ctx.in(3)) == 2 && b.dim(ids, 1) <= b.dim(ctx.in(3), 0),
               "input_ids {} do not fit {} positions", b.shape(ids).to_string(), b.dim(ctx.in(3), 0));
  const Id positions = ctx.has(8) ? gather(b, ctx.in(3), cast(b, ctx.in(8), ir::DataType::kInt32), 0)
                                  : slice_axis(b, ctx.in(3), 0, 0, b.dim(ids, 1));
  Id sum = add(b, gather(b, ctx.in(2), ids, 0), positions);
  if (ctx.has(1) && ctx.has(4)) sum = add(b, sum, gather(b, ctx.in(4), cast(b, ctx.in(1), ir::DataType::kInt32), 0));
  if (ctx.wants(1)) {
    const Id count = ctx.has(7) ? reduce(b, Op::SUM, cast(b, ctx.in(7), ir::DataType::kInt32), {1}, false)
                                : b.filled(ir::DataType::kInt32, shape_from({b.dim(ids, 0)}), 0);
    ctx.out(1, {count, onnx::ElementType::kInt32, {}});
  }
  if (ctx.wants(2)) ctx.out(2, float_value(sum));
  return normalized(ctx, convert_layer_normalization, sum, ctx.in(5), ctx.in(6));
}

}  // namespace reef::import
