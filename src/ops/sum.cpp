// SPDX-License-Identifier: Apache-2.0
// SUM: sums along the given axes. int32 and int64 sums wrap around.
//
// Quantized sums are taken in 32 bits and then rescaled. Releases differ here:
//   2.9        in float, and what does not fit the type wraps around. Where input and output are quantized alike (int16
//              must be), raw values are added in the type itself, zero points and all
//   current    in fixed point, saturating. LiteRT 2.3 itself takes int8 for uint8 and does not know int16; we do what
//   its
//              successors do
#include "ir/op.h"
#include "ops/chip_rules.h"
#include "ops/reduce_quantized.h"

namespace reef::ops {
namespace {

template <typename T>
Result<Kernel> fixed_point_kernel(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const RescaledReduction rescaling, RescaledReduction::of(ctx));
  request_wide_sums(ctx);
  return make_wide_sum_kernel<T>([rescaling](const kernels::ReducePlan& plan) {
    return [rescaling, count = plan.reduced_elements](std::int32_t sum) {
      const std::int32_t centred = remove_zero_points(sum, rescaling.input.zero_point, count);
      return numeric::saturate<T>(
          numeric::wrapping_add(numeric::multiply(centred, rescaling.factor), rescaling.output.zero_point));
    };
  });
}

template <typename T>
Result<Kernel> sum_float_kernel(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const RescaledReduction rescaling, RescaledReduction::of(ctx));
  request_wide_sums(ctx);
  return make_wide_sum_kernel<T>([rescaling](const kernels::ReducePlan& plan) {
    const float scale = rescaling.input.scale / rescaling.output.scale;
    const float bias =
        static_cast<float>(-rescaling.input.zero_point) * scale * static_cast<float>(plan.reduced_elements);
    return [=](std::int32_t sum) {
      const std::int32_t rounded = numeric::round_to_int32(std::round(static_cast<float>(sum) * scale + bias));
      return static_cast<T>(numeric::wrapping_add(rounded, rescaling.output.zero_point));
    };
  });
}

template <typename T>
Result<Kernel> sum_quantized_kernel(PrepareContext& ctx) {
  if (ctx.environment()->tflite_release() != TfliteRelease::k2_9) return fixed_point_kernel<T>(ctx);
  REEF_ASSIGN_OR_RETURN(const RescaledReduction rescaling, RescaledReduction::of(ctx));
  if (rescaling.is_identity()) return make_reduce_kernel<T, SumFunction<T>>();
  if (sizeof(T) == 1) return sum_float_kernel<T>(ctx);
  return unsupported("TFLite 2.9 does not rescale sums of {}; input and output must be quantized alike",
                     ir::type_name(ctx.input(0).type));
}

Result<Kernel> sum_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> {
        if constexpr (sizeof(T) < 4) {
          return sum_quantized_kernel<T>(ctx);
        } else {
          return make_reduce_kernel<T, SumFunction<T>>();
        }
      });
}

constexpr ChipRule kSumChipRules[] = {chip::kNoReductionOfBatch};

}  // namespace

constinit const OpDef sum_op = define(
    {.name = name_of(Op::SUM),
     .summary = "Sums along axes.",
     .attributes = kReduceAttributes,
     .types = "float32; int8; uint8; int16; int32; int64",
     .form = Form::kReduction,
     .prepare = sum_prepare,
     .chip = {
         .first_runtime = 12, .rules = kSumChipRules, .parameters = input_set({1}), .evidence = chip::kStamped12}});

}  // namespace reef::ops
