// SPDX-License-Identifier: Apache-2.0
// NEG: -x. On int8 and int16 the bits are negated whatever the quantization says, as TFLite does; the lowest integer
// is its own negative.
#include <cstdint>
#include <type_traits>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
T negated(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return -x;
  } else {
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
  }
}

Result<Kernel> neg_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.input(0).type == DataType::kFloat16) return half_kernel([](float x) { return -x; });
  return for_element_type<float, std::int8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, []<typename T>() { return map_kernel<T, T>([](T x) { return negated(x); }); });
}

}  // namespace

constinit const OpDef neg_op = define(
    {.name = name_of(Op::NEG),
     .summary = "Negative.",
     .types = "float32; float16; int8; int16; int32; int64",
     .form = Form::kUnary,
     .prepare = neg_prepare,
     .chip = {.instead = "Multiply by -1 with MUL, or swap the operands of the SUB behind it.", .rewrite = "unary"}});

}  // namespace reef::ops
