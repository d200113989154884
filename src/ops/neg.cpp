// SPDX-License-Identifier: Apache-2.0
// NEG: -x. On int8 and int16 the bits are negated whatever the quantization says, as TFLite does; the lowest integer
// is its own negative.
#include <cstdint>
#include <type_traits>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "float16", "int8", "int16", "int32", "int64"};

template <typename T>
T negated(T x) {
  return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return map_kernel<float, float>([](float x) { return -x; });
    case DataType::kFloat16:
      return half_kernel([](float x) { return -x; });
    case DataType::kInt8:
      return map_kernel<std::int8_t, std::int8_t>(negated<std::int8_t>);
    case DataType::kInt16:
      return map_kernel<std::int16_t, std::int16_t>(negated<std::int16_t>);
    case DataType::kInt32:
      return map_kernel<std::int32_t, std::int32_t>(negated<std::int32_t>);
    case DataType::kInt64:
      return map_kernel<std::int64_t, std::int64_t>(negated<std::int64_t>);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef neg_op = define(
    {.name = name_of(Op::NEG),
     .summary = "Negative.",
     .types = kTypes,
     .elementwise = input_set({0}),
     .form = Form::kUnary,
     .infer = infer_same_shape,
     .prepare = prepare,
     .chip = {.instead = "Multiply by -1 with MUL, or swap the operands of the SUB behind it.", .rewrite = "unary"}});

}  // namespace reef::ops
