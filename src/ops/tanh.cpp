// SPDX-License-Identifier: Apache-2.0
// TANH: hyperbolic tangent. int8 and uint8 by table, int16 by interpolation with an output scale of 1/32768.
#include <cmath>
#include <cstdint>

#include "kernels/activation/sigmoid16.h"
#include "kernels/elementwise/float_functions.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> tanh_16bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  int exponent = 0;
  REEF_REQUIRE(kernels::is_power_of_two_scale(q.output.scale, exponent) && exponent == -15,
               "the output's scale is {}; int16 TANH needs 1/32768", q.output.scale);
  const auto scaling = kernels::sigmoid16_scaling(q.input.scale, 0b11);
  return Kernel([scaling](RunContext& run) {
    const std::int16_t* in = run.input(0).values<std::int16_t>().data();
    std::int16_t* out = run.output(0).mutable_values<std::int16_t>().data();
    run.parallel_for(run.input(0).elements(), kUnaryGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::tanh16(in + begin, end - begin, scaling, out + begin);
    });
    return ok_status();
  });
}

Result<Kernel> tanh_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const auto tangent = [](float x) { return std::tanh(x); };
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(kernels::hyperbolic_tangents);
    case DataType::kFloat16:
      return half_kernel(tangent);
    case DataType::kInt8:
      return table8_kernel<std::int8_t>(ctx, tangent);
    case DataType::kUInt8:
      return table8_kernel<std::uint8_t>(ctx, tangent);
    case DataType::kInt16:
      return tanh_16bit(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef tanh_op = define({.name = name_of(Op::TANH),
                                        .summary = "Hyperbolic tangent.",
                                        .types = "float32; float16; int8; uint8; int16",
                                        .form = Form::kUnary,
                                        .traits = trait_set({Trait::kKeepsNonNegative}),
                                        .prepare = tanh_prepare,
                                        .chip = {.first_runtime = 10}});

}  // namespace reef::ops
