// SPDX-License-Identifier: Apache-2.0
// Element-wise nodes of two or more operands, with numpy's broadcasting, which is TFLite's too.
//
// Integers of 8 and 16 bits are computed in 32 bits and uint32 in 64, then cast back, which keeps ONNX's wrapping.
// Before opset 7 the second operand was aligned at the attribute "axis".
#include "import/onnx/converters.h"

namespace reef::import {
namespace {

// Operand 1, with axes of size 1 behind it where an old node aligns it at "axis".
Id second_operand(NodeContext& ctx) {
  const Id y = ctx.in(1);
  if (ctx.opset() >= 7 || ctx.int_attribute("broadcast", 0) == 0 || !ctx.has_attribute("axis")) return y;
  const std::int64_t rank = ctx.b.rank(ctx.in(0));
  std::int64_t axis = ctx.int_attribute("axis", 0);
  if (axis < -rank || axis >= rank) {
    ctx.b.fail(invalid_input("attribute axis is {} for {} dimensions", axis, rank));
    return y;
  }
  if (axis < 0) axis += rank;
  Dims dims = dims_of(ctx.b.shape(y));
  while (static_cast<std::int64_t>(dims.size()) + axis < rank) dims.push_back(1);
  return reshape(ctx.b, y, dims);
}

Id arithmetic(GraphBuilder& b, OpName op, Id x, Id y) {
  return cast(b, binary(b, op, widened(b, x), widened(b, y)), b.type(x));
}

// Any number of operands, joined in order.
Result<Id> folded(NodeContext& ctx, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(ctx.input_count()));
  REEF_REQUIRE(ctx.input_count() >= 1, "it has no inputs");
  Id result = ctx.in(0);
  for (int i = 1; i < ctx.input_count(); ++i) result = arithmetic(ctx.b, op, result, ctx.in(i));
  return result;
}

}  // namespace

Status convert_arithmetic(NodeContext& ctx, GraphBuilder& b, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_operands(2));
  return ctx.give(arithmetic(b, op, ctx.in(0), second_operand(ctx)));
}

Status convert_folded(NodeContext& ctx, GraphBuilder&, OpName op) {
  REEF_ASSIGN_OR_RETURN(const Id result, folded(ctx, op));
  return ctx.give(result);
}

Status convert_comparison(NodeContext& ctx, GraphBuilder& b, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_operands(2));
  const bool is_bool = b.type(ctx.in(0)) == ir::DataType::kBool;
  const Id x = is_bool ? ctx.in(0) : widened(b, ctx.in(0));
  const Id y = is_bool ? second_operand(ctx) : widened(b, second_operand(ctx));
  return ctx.give(compare(b, op, x, y));
}

// TFLite divides no int64; quotients of sizes and positions fit 32 bits.
Status convert_div(NodeContext& ctx, GraphBuilder& b) {
  const Id x = widened(b, ctx.in(0)), y = widened(b, second_operand(ctx));
  if (b.type(x) != ir::DataType::kInt64) return convert_arithmetic(ctx, b, Op::DIV);
  const Id quotient = div(b, cast(b, x, ir::DataType::kInt32), cast(b, y, ir::DataType::kInt32));
  return ctx.give(cast(b, quotient, b.type(ctx.in(0))));
}

Status convert_mean(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Id total, folded(ctx, Op::ADD));
  return ctx.give(mul(b, total, 1.0 / ctx.input_count()));
}

// The exponent may be of another type. Squares and roots become their own operators, which have integer kernels.
Status convert_pow(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const Id y = second_operand(ctx);
  const auto exponent = b.elements(y) == 1 ? b.float_values(y) : std::nullopt;
  const bool keeps_shape = b.rank(y) <= b.rank(x);
  if (exponent && keeps_shape && is_float(b.type(x))) {
    const float n = exponent->at(0);
    if (n == 1 || n == 2 || n == 0.5f || n == -0.5f) {
      return ctx.give(n == 1 ? x : unary(b, n == 2 ? Op::SQUARE : n == 0.5f ? Op::SQRT : Op::RSQRT, x));
    }
  }
  if (b.type(x) == ir::DataType::kInt32 && b.type(y) == ir::DataType::kInt32)
    return convert_arithmetic(ctx, b, Op::POW);
  const Id result = binary(b, Op::POW, cast(b, x, ir::DataType::kFloat32), cast(b, y, ir::DataType::kFloat32));
  return ctx.give(cast(b, result, b.type(x)));
}

// fmod = 1: the sign is the dividend's, as in C; else the divisor's, as in Python.
Status convert_mod(NodeContext& ctx, GraphBuilder& b) {
  const Id x = widened(b, ctx.in(0)), y = widened(b, ctx.in(1));
  if (ctx.int_attribute("fmod", 0) == 0) return ctx.give(cast(b, binary(b, Op::FLOOR_MOD, x, y), b.type(ctx.in(0))));
  const auto magnitude = [&](Id value) { return maximum(b, value, subtract_from(b, 0, value)); };
  const Id rest = binary(b, Op::FLOOR_MOD, magnitude(x), magnitude(y));
  const Id is_negative = compare(b, Op::LESS, x, b.scalar(b.type(x), 0));
  return ctx.give(cast(b, select(b, is_negative, subtract_from(b, 0, rest), rest), b.type(ctx.in(0))));
}

Status convert_bit_shift(NodeContext& ctx, GraphBuilder& b) {
  const std::string direction = ctx.string_attribute("direction", "");
  REEF_REQUIRE(direction == "LEFT" || direction == "RIGHT", "attribute direction is '{}'; it must be LEFT or RIGHT",
               direction);
  const ir::DataType type = b.type(ctx.in(0));
  if (direction == "RIGHT") {
    if (type != ir::DataType::kInt64) return ctx.give(binary(b, Op::RIGHT_SHIFT, ctx.in(0), ctx.in(1)));
    // TFLite shifts no 64 bits; as floating point the result is exact up to 2^24.
    const Id amount = cast(b, ctx.in(1), ir::DataType::kFloat32);
    const Id factor = binary(b, Op::POW, b.scalar(ir::DataType::kFloat32, 0.5), amount);
    const Id product = mul(b, cast(b, ctx.in(0), ir::DataType::kFloat32), factor);
    return ctx.give(cast(b, unary(b, Op::FLOOR, product), type));
  }
  const Id x = cast(b, ctx.in(0), ir::DataType::kInt64);
  // Powers of two are exact in float32. By as many bits as there are, or more, nothing is left.
  const double bits = ir::bits_per_element(type);
  const Id given = cast(b, ctx.in(1), ir::DataType::kFloat32);
  const Id amount = minimum(b, given, b.scalar(ir::DataType::kFloat32, bits - 1));
  const Id factor = cast(b, binary(b, Op::POW, b.scalar(ir::DataType::kFloat32, 2), amount), ir::DataType::kInt64);
  const Id is_left = cast(b, compare(b, Op::LESS, given, b.scalar(ir::DataType::kFloat32, bits)), ir::DataType::kInt64);
  return ctx.give(cast(b, mul(b, mul(b, x, factor), is_left), type));
}

Status convert_where(NodeContext& ctx, GraphBuilder& b) {
  const Id yes = widened(b, ctx.in(1)), no = widened(b, ctx.in(2));
  return ctx.give(cast(b, select(b, ctx.in(0), yes, no), b.type(ctx.in(1))));
}

Status convert_prelu(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  Id slope = ctx.in(1);
  // Before opset 7 a slope of C elements stood for the channel axis.
  if (ctx.opset() < 7 && b.rank(slope) == 1 && b.rank(x) > 2 && b.dim(slope, 0) == b.dim(x, 1)) {
    Dims dims(static_cast<std::size_t>(b.rank(x) - 1), 1);
    dims[0] = b.dim(x, 1);
    slope = reshape(b, slope, dims);
  }
  if (is_float(b.type(x))) return ctx.give(b.emit(Op::PRELU, {x, slope}, b.type(x)));
  const Id wide = widened(b, x), zero = b.scalar(b.type(wide), 0);
  const Id below = mul(b, minimum(b, wide, zero), widened(b, slope));
  return ctx.give(cast(b, add(b, maximum(b, wide, zero), below), b.type(x)));
}

}  // namespace reef::import
