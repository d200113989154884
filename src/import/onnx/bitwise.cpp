// SPDX-License-Identifier: Apache-2.0
// BitwiseAnd, -Or, -Xor and -Not. TFLite has the exclusive or of these alone; the others follow:
//   a + b = (a ^ b) + 2 (a & b), halved bit by bit so that nothing overflows, and a | b = (a ^ b) + (a & b).
// Up to 32 bits; TFLite shifts no 64.
#include "import/onnx/converter.h"

namespace reef::import {
namespace {

struct Operands {
  Id x = kAbsent, y = kAbsent;  // int32
};

Result<Operands> read_operands(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  GraphBuilder& b = ctx.b;
  Operands operands = {widened(b, ctx.in(0)), widened(b, ctx.in(1))};
  if (b.type(operands.x) != ir::DataType::kInt32 || b.type(operands.y) != ir::DataType::kInt32) {
    return unsupported("bits of {} are not converted; cast to int32", ir::type_name(b.type(ctx.in(0))));
  }
  return operands;
}

Id exclusive_or(GraphBuilder& b, const Operands& o) {
  return b.emit(Op::BITWISE_XOR, {o.x, o.y}, ir::DataType::kInt32);
}

Id half(GraphBuilder& b, Id x) {
  return b.emit(Op::RIGHT_SHIFT, {x, b.scalar(ir::DataType::kInt32, 1)}, ir::DataType::kInt32);
}

Id both(GraphBuilder& b, const Operands& o, Id different) {
  const Id x = half(b, o.x), y = half(b, o.y);
  const auto last_bit = [&](Id whole, Id halved) { return sub(b, sub(b, whole, halved), halved); };
  const Id upper = sub(b, add(b, x, y), half(b, different));
  return add(b, upper, mul(b, last_bit(o.x, x), last_bit(o.y, y)));
}

}  // namespace

Status convert_bitwise_xor(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Operands o, read_operands(ctx));
  return ctx.give(cast(b, exclusive_or(b, o), b.type(ctx.in(0))));
}

Status convert_bitwise_and(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Operands o, read_operands(ctx));
  return ctx.give(cast(b, both(b, o, exclusive_or(b, o)), b.type(ctx.in(0))));
}

Status convert_bitwise_or(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Operands o, read_operands(ctx));
  const Id different = exclusive_or(b, o);
  return ctx.give(cast(b, add(b, different, both(b, o, different)), b.type(ctx.in(0))));
}

Status convert_bitwise_not(NodeContext& ctx, GraphBuilder& b) {
  // All ones less x: -1 - x, which cast to an unsigned type is that too.
  return ctx.give(cast(b, subtract_from(b, -1, widened(b, ctx.in(0))), b.type(ctx.in(0))));
}

}  // namespace reef::import
