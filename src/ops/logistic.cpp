// SPDX-License-Identifier: Apache-2.0
// LOGISTIC: 1 / (1 + exp(-x)).
//
// float32 switches to exp(x) below -9 and to 1 above 16.6, as TFLite's reference kernel does. int8 and uint8 by a table
// whose output scale must be 1/256, int16 by interpolation with an output scale of 1/32768.
#include <cmath>
#include <cstdint>

#include "kernels/activation/sigmoid16.h"
#include "kernels/elementwise/float_functions.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

float float_logistic(float x) {
  constexpr float kAlmostOne = 16.619047164916992188f;
  constexpr float kAlmostExponential = -9.0f;
  if (x > kAlmostOne) return 1.0f;
  if (x < kAlmostExponential) return std::exp(x);
  return 1.0f / (1.0f + std::exp(-x));
}

template <typename T>
Result<Kernel> logistic_8bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  REEF_REQUIRE(q.output.scale == 1.0f / 256, "the output's scale is {}; LOGISTIC needs 1/256", q.output.scale);
  return table8_kernel<T>(ctx, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
}

Result<Kernel> logistic_16bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  REEF_REQUIRE(q.output.scale == 1.0f / 32768, "the output's scale is {}; int16 LOGISTIC needs 1/32768",
               q.output.scale);
  const auto scaling = kernels::sigmoid16_scaling(q.input.scale, 0b01);
  return Kernel([scaling](RunContext& run) {
    const std::int16_t* in = run.input(0).values<std::int16_t>().data();
    std::int16_t* out = run.output(0).mutable_values<std::int16_t>().data();
    run.parallel_for(run.input(0).elements(), kUnaryGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::logistic16(in + begin, end - begin, scaling, out + begin);
    });
    return ok_status();
  });
}

Result<Kernel> logistic_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(kernels::logistics);
    case DataType::kFloat16:
      return half_kernel(float_logistic);
    case DataType::kInt8:
      return logistic_8bit<std::int8_t>(ctx);
    case DataType::kUInt8:
      return logistic_8bit<std::uint8_t>(ctx);
    case DataType::kInt16:
      return logistic_16bit(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef logistic_op = define({.name = name_of(Op::LOGISTIC),
                                            .summary = "Logistic function (sigmoid).",
                                            .types = "float32; float16; int8; uint8; int16",
                                            .form = Form::kUnary,
                                            .traits = trait_set({Trait::kNeverNegative}),
                                            .prepare = logistic_prepare,
                                            .chip = {.first_runtime = 10}});

}  // namespace reef::ops
