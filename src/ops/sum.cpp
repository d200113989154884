// SPDX-License-Identifier: Apache-2.0
// SUM: sums along the given axes.
//
// Quantized sums are taken in 32 bits and rescaled once in fixed point. TFLite 2.9 rescaled in float instead (and, for
// equal scales, did not remove the zero point); we follow the later releases.
#include "ops/reduce_quantized.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16", "int32", "int64"};

template <typename T>
Result<Kernel> quantized_kernel(PrepareContext& ctx) {
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

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return make_reduce_kernel<float, SumFunction<float>>();
    case DataType::kInt32:
      return make_reduce_kernel<std::int32_t, SumFunction<std::int32_t>>();
    case DataType::kInt64:
      return make_reduce_kernel<std::int64_t, SumFunction<std::int64_t>>();
    case DataType::kInt8:
      return quantized_kernel<std::int8_t>(ctx);
    case DataType::kUInt8:
      return quantized_kernel<std::uint8_t>(ctx);
    case DataType::kInt16:
      return quantized_kernel<std::int16_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

extern const OpDef sum_op;
constinit const OpDef sum_op = define({.name = "SUM",
                                       .summary = "Sums along axes.",
                                       .inputs = {2, 2},
                                       .attributes = kReduceAttributes,
                                       .types = kTypes,
                                       .infer = infer_reduce,
                                       .prepare = prepare});

}  // namespace reef::ops
