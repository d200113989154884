// SPDX-License-Identifier: Apache-2.0
// Activations: nodes of one operand with parameters.
#include <cmath>
#include <limits>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

Id relu(GraphBuilder& b, Id x) { return unary(b, Op::RELU, x); }

// scale * (exp(min(x, 0)) - 1)
Id exponential_below(GraphBuilder& b, Id x, double scale) {
  return mul(b, unary(b, Op::ELU, minimum(b, x, b.scalar(b.type(x), 0))), scale);
}

// log(1 + exp(x)) without overflow.
Id softplus(GraphBuilder& b, Id x) {
  const Id falling = unary(b, Op::EXP, unary(b, Op::NEG, unary(b, Op::ABS, x)));
  return add(b, relu(b, x), unary(b, Op::LOG, add(b, falling, 1.0)));
}

}  // namespace

Status convert_leaky_relu(NodeContext& ctx, GraphBuilder& b) {
  ir::Attributes attributes;
  attributes.set("alpha", static_cast<double>(ctx.float_attribute("alpha", 0.01f)));
  return ctx.give(b.emit(Op::LEAKY_RELU, {ctx.in(0)}, b.type(ctx.in(0)), std::move(attributes)));
}

Status convert_elu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const float alpha = ctx.float_attribute("alpha", 1);
  return ctx.give(alpha == 1 ? unary(b, Op::ELU, x) : add(b, relu(b, x), exponential_below(b, x, alpha)));
}

Status convert_selu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const float alpha = ctx.float_attribute("alpha", 1.67326319217681884765625f);
  const float gamma = ctx.float_attribute("gamma", 1.05070102214813232421875f);
  return ctx.give(mul(b, add(b, relu(b, x), exponential_below(b, x, alpha)), gamma));
}

// max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))
Status convert_celu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const float alpha = ctx.float_attribute("alpha", 1);
  REEF_REQUIRE(alpha != 0, "attribute alpha is 0");
  return ctx.give(add(b, relu(b, x), exponential_below(b, mul(b, x, 1.0 / alpha), alpha)));
}

// max(0, min(1, alpha * x + beta))
Status convert_hard_sigmoid(NodeContext& ctx, GraphBuilder& b) {
  const Id line = add(b, mul(b, ctx.in(0), ctx.float_attribute("alpha", 0.2f)), ctx.float_attribute("beta", 0.5f));
  return ctx.give(unary(b, Op::RELU_0_TO_1, line));
}

Status convert_hard_swish(NodeContext& ctx, GraphBuilder& b) { return ctx.give(unary(b, Op::HARD_SWISH, ctx.in(0))); }

Status convert_gelu(NodeContext& ctx, GraphBuilder& b) {
  const std::string approximate = ctx.string_attribute("approximate", "none");
  REEF_REQUIRE(approximate == "none" || approximate == "tanh", "attribute approximate is '{}'", approximate);
  ir::Attributes attributes;
  attributes.set("approximate", approximate == "tanh");
  return ctx.give(b.emit(Op::GELU, {ctx.in(0)}, b.type(ctx.in(0)), std::move(attributes)));
}

Status convert_softplus(NodeContext& ctx, GraphBuilder& b) { return ctx.give(softplus(b, ctx.in(0))); }

Status convert_mish(NodeContext& ctx, GraphBuilder& b) {
  return ctx.give(mul(b, ctx.in(0), unary(b, Op::TANH, softplus(b, ctx.in(0)))));
}

Status convert_swish(NodeContext& ctx, GraphBuilder& b) {
  const float alpha = ctx.float_attribute("alpha", 1);
  const Id x = ctx.in(0);
  return ctx.give(mul(b, x, unary(b, Op::LOGISTIC, alpha == 1 ? x : mul(b, x, alpha))));
}

Status convert_softsign(NodeContext& ctx, GraphBuilder& b) {
  return ctx.give(div(b, ctx.in(0), add(b, unary(b, Op::ABS, ctx.in(0)), 1.0)));
}

Status convert_thresholded_relu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id is_above = compare(b, Op::GREATER, x, b.scalar(b.type(x), ctx.float_attribute("alpha", 1)));
  return ctx.give(select(b, is_above, x, b.scalar(b.type(x), 0)));
}

Status convert_shrink(NodeContext& ctx, GraphBuilder& b) {
  const Id x = widened(b, ctx.in(0));
  const double limit = ctx.float_attribute("lambd", 0.5f), bias = ctx.float_attribute("bias", 0);
  const Id zero = b.scalar(b.type(x), 0);
  const Id above = select(b, compare(b, Op::GREATER, x, b.scalar(b.type(x), limit)), sub(b, x, bias), zero);
  const Id below = compare(b, Op::LESS, x, b.scalar(b.type(x), -limit));
  return ctx.give(cast(b, select(b, below, add(b, x, bias), above), b.type(ctx.in(0))));
}

namespace {

// A bound of Clip: an attribute before opset 11, an input since. nullopt: none, or not a known number.
std::optional<double> known_bound(NodeContext& ctx, std::string_view name, int input, double none) {
  if (ctx.opset() < 11) {
    return ctx.has_attribute(name) ? static_cast<double>(ctx.float_attribute(name, 0)) : none;
  }
  if (!ctx.has(input)) return none;
  const auto values = ctx.b.float_values(ctx.in(input));
  if (!values || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

}  // namespace

Status convert_clip(NodeContext& ctx, GraphBuilder& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Id x = ctx.in(0);
  const auto low = known_bound(ctx, "min", 1, -kInfinity), high = known_bound(ctx, "max", 2, kInfinity);
  REEF_RETURN_IF_ERROR(b.status());
  if (is_float(b.type(x)) && low && high) {
    const auto is = [&](double a, double c) { return *low == a && *high == c; };
    const OpName op = is(0, 6) ? Op::RELU6 : is(0, kInfinity) ? Op::RELU : is(-1, 1) ? Op::RELU_N1_TO_1 : OpName();
    if (!op.empty()) return ctx.give(unary(b, op, x));
  }
  Id result = widened(b, x);
  const auto has_bound = [](const std::optional<double>& bound) { return !bound || std::isfinite(*bound); };
  const auto bound_value = [&](const std::optional<double>& bound, int input) {
    return bound && is_float(b.type(x)) ? b.scalar(b.type(result), *bound) : widened(b, ctx.in(input));
  };
  if (has_bound(low)) result = maximum(b, result, bound_value(low, 1));
  if (has_bound(high)) result = minimum(b, result, bound_value(high, 2));
  return ctx.give(cast(b, result, b.type(x)));
}

namespace {

// Softmax and its like: over one axis since opset 13; before, over all axes from "axis" on, as one.
Status along_axis(NodeContext& ctx, const std::function<Id(GraphBuilder&, Id)>& over_last) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  GraphBuilder& b = ctx.b;
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  const bool is_old = ctx.opset() < 13;
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", is_old ? 1 : -1), rank));
  if (axis == rank - 1) return ctx.give(over_last(b, x));
  if (is_old) {
    const ir::Shape shape = b.shape(x);
    const Id rows = reshape(b, x, {shape.product(0, axis), shape.product(axis, rank)});
    return ctx.give(reshape(b, over_last(b, rows), dims_of(shape)));
  }
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  return ctx.give(transpose(b, over_last(b, transpose(b, x, order)), order));
}

}  // namespace

Status convert_softmax(NodeContext& ctx, GraphBuilder&) { return along_axis(ctx, softmax_last); }

Status convert_log_softmax(NodeContext& ctx, GraphBuilder&) {
  return along_axis(ctx, [](GraphBuilder& b, Id x) { return unary(b, Op::LOG_SOFTMAX, x); });
}

Status convert_hardmax(NodeContext& ctx, GraphBuilder&) {
  return along_axis(ctx, [](GraphBuilder& b, Id x) {
    const int last = b.rank(x) - 1;
    ir::Attributes index_type;
    index_type.set("output_type", ir::EnumName{"INT32"});
    const Id index =
        b.emit(Op::ARG_MAX, {x, b.scalar(ir::DataType::kInt32, last)}, ir::DataType::kInt32, std::move(index_type));
    ir::Attributes attributes;
    attributes.set("axis", std::int64_t{-1});
    const Id depth = b.scalar(ir::DataType::kInt32, b.dim(x, last));
    return b.emit(Op::ONE_HOT, {index, depth, b.scalar(b.type(x), 1), b.scalar(b.type(x), 0)}, b.type(x),
                  std::move(attributes));
  });
}

}  // namespace reef::import
