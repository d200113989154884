// SPDX-License-Identifier: Apache-2.0
// Element-wise nodes of one operand, those that TFLite has operators for and those that follow from them.
//
// Functions that lose their leading digits near 0 when written with exp and log (sinh, asinh, atanh) take the first
// terms of their series there.
#include <limits>
#include <numbers>

#include "import/onnx/converters.h"

namespace reef::import {
namespace {

// x * (1 + c1 x^2 + c2 x^4) where |x| < 1/8, else `far`.
Id odd_near_zero(GraphBuilder& b, Id x, Id far, double c1, double c2) {
  const Id square = unary(b, Op::SQUARE, x);
  const Id series = mul(b, x, add(b, mul(b, square, add(b, mul(b, square, c2), c1)), 1.0));
  const Id is_near = compare(b, Op::LESS, unary(b, Op::ABS, x), b.scalar(b.type(x), 0.125));
  return select(b, is_near, series, far);
}

// 1 - x^2 without cancellation.
Id one_minus_square(GraphBuilder& b, Id x) { return mul(b, subtract_from(b, 1.0, x), add(b, x, 1.0)); }

}  // namespace

Status convert_direct(NodeContext& ctx, GraphBuilder& b, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_operands(1));
  return ctx.give(unary(b, op, ctx.in(0)));
}

Status convert_relu(NodeContext& ctx, GraphBuilder& b) {
  if (is_float(b.type(ctx.in(0)))) return convert_direct(ctx, b, Op::RELU);
  const Id x = widened(b, ctx.in(0));
  return ctx.give(cast(b, maximum(b, x, b.scalar(b.type(x), 0)), b.type(ctx.in(0))));
}

Status convert_abs(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  if (is_float(b.type(x))) return convert_direct(ctx, b, Op::ABS);
  const Id wide = widened(b, x);
  return ctx.give(cast(b, maximum(b, wide, subtract_from(b, 0, wide)), b.type(x)));
}

Status convert_neg(NodeContext& ctx, GraphBuilder& b) {
  const Id wide = widened(b, ctx.in(0));
  return ctx.give(cast(b, unary(b, Op::NEG, wide), b.type(ctx.in(0))));
}

Status convert_sign(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  if (is_float(b.type(x))) return convert_direct(ctx, b, Op::SIGN);
  const Id wide = widened(b, x);
  const Id limited = minimum(b, maximum(b, wide, b.scalar(b.type(wide), -1)), b.scalar(b.type(wide), 1));
  return ctx.give(cast(b, limited, b.type(x)));
}

Status convert_reciprocal(NodeContext& ctx, GraphBuilder& b) {
  return ctx.give(div(b, b.scalar(b.type(ctx.in(0)), 1), ctx.in(0)));
}

Status convert_tan(NodeContext& ctx, GraphBuilder& b) {
  return ctx.give(div(b, unary(b, Op::SIN, ctx.in(0)), unary(b, Op::COS, ctx.in(0))));
}

Status convert_atan(NodeContext& ctx, GraphBuilder& b) {
  const Id one = b.filled(ir::DataType::kFloat32, b.shape(ctx.in(0)), 1);
  return ctx.give(binary(b, Op::ATAN2, ctx.in(0), one));
}

Status convert_asin(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  return ctx.give(binary(b, Op::ATAN2, x, unary(b, Op::SQRT, one_minus_square(b, x))));
}

Status convert_acos(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  return ctx.give(binary(b, Op::ATAN2, unary(b, Op::SQRT, one_minus_square(b, x)), x));
}

Status convert_sinh(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id far = mul(b, sub(b, unary(b, Op::EXP, x), unary(b, Op::EXP, unary(b, Op::NEG, x))), 0.5);
  return ctx.give(odd_near_zero(b, x, far, 1.0 / 6, 1.0 / 120));
}

Status convert_cosh(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  return ctx.give(mul(b, add(b, unary(b, Op::EXP, x), unary(b, Op::EXP, unary(b, Op::NEG, x))), 0.5));
}

Status convert_asinh(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id magnitude = unary(b, Op::ABS, x);
  const Id root = unary(b, Op::SQRT, add(b, unary(b, Op::SQUARE, x), 1.0));
  const Id far = mul(b, unary(b, Op::SIGN, x), unary(b, Op::LOG, add(b, magnitude, root)));
  return ctx.give(odd_near_zero(b, x, far, -1.0 / 6, 3.0 / 40));
}

Status convert_acosh(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id root = unary(b, Op::SQRT, mul(b, sub(b, x, 1.0), add(b, x, 1.0)));
  return ctx.give(unary(b, Op::LOG, add(b, x, root)));
}

Status convert_atanh(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id far = mul(b, unary(b, Op::LOG, div(b, add(b, x, 1.0), subtract_from(b, 1.0, x))), 0.5);
  return ctx.give(odd_near_zero(b, x, far, 1.0 / 3, 1.0 / 5));
}

// erf by Abramowitz and Stegun 7.1.26 (absolute error below 1.5e-7 in exact arithmetic), and below 0.5 by its series.
// GELU written with Erf does not come here: see patterns.h.
Status convert_erf(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id magnitude = unary(b, Op::ABS, x);
  const Id t = div(b, b.scalar(b.type(x), 1), add(b, mul(b, magnitude, 0.3275911), 1.0));
  Id p = add(b, mul(b, t, 1.061405429), -1.453152027);
  for (const double c : {1.421413741, -0.284496736, 0.254829592}) p = add(b, mul(b, p, t), c);
  const Id square = unary(b, Op::SQUARE, x);
  const Id tail = mul(b, mul(b, p, t), unary(b, Op::EXP, unary(b, Op::NEG, square)));
  const Id far = mul(b, unary(b, Op::SIGN, x), subtract_from(b, 1.0, tail));
  // 2/sqrt(pi) * (x - x^3/3 + x^5/10 - x^7/42 + x^9/216 - x^11/1320)
  Id series = add(b, mul(b, square, -1.0 / 1320), 1.0 / 216);
  for (const double c : {-1.0 / 42, 1.0 / 10, -1.0 / 3, 1.0}) series = add(b, mul(b, series, square), c);
  const Id near = mul(b, mul(b, x, series), 2 * std::numbers::inv_sqrtpi);
  const Id is_near = compare(b, Op::LESS, magnitude, b.scalar(b.type(x), 0.5));
  return ctx.give(select(b, is_near, near, far));
}

Status convert_is_nan(NodeContext& ctx, GraphBuilder& b) {
  return ctx.give(compare(b, Op::NOT_EQUAL, ctx.in(0), ctx.in(0)));
}

Status convert_is_inf(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool above = ctx.int_attribute("detect_positive", 1) != 0, below = ctx.int_attribute("detect_negative", 1) != 0;
  if (!above && !below) {
    ctx.out(0, b.filled(ir::DataType::kBool, b.shape(x), 0));
  } else if (above && below) {
    ctx.out(0, compare(b, Op::EQUAL, unary(b, Op::ABS, x), b.scalar(b.type(x), infinity)));
  } else {
    ctx.out(0, compare(b, Op::EQUAL, x, b.scalar(b.type(x), above ? infinity : -infinity)));
  }
  return ok_status();
}

}  // namespace reef::import
