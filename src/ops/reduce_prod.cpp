// SPDX-License-Identifier: Apache-2.0
// REDUCE_PROD: products along the given axes.
//
// Quantized products (int8, int16) are rescaled after every multiplication, by input_scale / output_scale^(1 / n) where
// n elements make one output, so that they stay in range; the rounding of each step is TFLite's. Tensors without
// quantization hold plain numbers and wrap around. The quantized product of nothing is 0: TFLite leaves it undefined.
#include <cmath>

#include "ir/op.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

template <typename T>
struct RescalingCombiner {
  std::int32_t zero_point;
  numeric::Multiplier factor;
  std::int32_t start(T x) const { return x - zero_point; }
  std::int32_t next(std::int32_t so_far, T x) const {
    return numeric::multiply(static_cast<std::int64_t>(so_far) * (x - zero_point), factor);
  }
  std::int32_t nothing() const { return 0; }
};

template <typename T>
Result<Kernel> reduce_prod_quantized_kernel(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(ctx.input(0), "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  ctx.request_scratch(ctx.output(0).elements() * static_cast<std::int64_t>(sizeof(std::int32_t)));
  return Kernel([=](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const kernels::ReducePlan plan, reduce_plan(run));
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    if (plan.input_is_empty) {
      std::fill_n(output, plan.outputs, T{0});
      return ok_status();
    }
    const double root = std::pow(static_cast<double>(out.scale), 1.0 / static_cast<double>(plan.reduced_elements));
    const numeric::Multiplier factor = numeric::make_multiplier(static_cast<double>(in.scale) / root);
    auto* products = reinterpret_cast<std::int32_t*>(run.scratch().data());
    run.parallel_for(plan.split_size, kernels::reduce_grain(plan), [&](std::int64_t begin, std::int64_t end) {
      kernels::reduce(plan, input, products, RescalingCombiner<T>{in.zero_point, factor}, begin, end);
      const std::int64_t last = end * plan.outputs_per_split;
      for (std::int64_t i = begin * plan.outputs_per_split; i < last; ++i) {
        const std::int32_t scaled = numeric::multiply(static_cast<std::int64_t>(products[i]), factor);
        output[i] = numeric::saturate<T>(numeric::wrapping_add(scaled, out.zero_point));
      }
    });
    return ok_status();
  });
}

Result<Kernel> reduce_prod_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  const DataType type = ctx.input(0).type;
  if (ctx.input(0).quantization->is_quantized()) {
    if (type == DataType::kInt8) return reduce_prod_quantized_kernel<std::int8_t>(ctx);
    if (type == DataType::kInt16) return reduce_prod_quantized_kernel<std::int16_t>(ctx);
    return unsupported("products of quantized {} are not supported; int8 or int16 is needed", ir::type_name(type));
  }
  REEF_RETURN_IF_ERROR(check_reduce_without_rescaling(ctx));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, type, []<typename T>() { return make_reduce_kernel<T, ProductFunction<T>>(); });
}

}  // namespace

constinit const OpDef reduce_prod_op = define({.name = name_of(Op::REDUCE_PROD),
                                               .summary = "Multiplies along axes.",
                                               .attributes = kReduceAttributes,
                                               .types = "float32; int8; int16; int32; int64; uint8 (not quantized)",
                                               .form = Form::kReduction,
                                               .prepare = reduce_prod_prepare,
                                               .chip = {.instead = "Use MUL of slices."}});

}  // namespace reef::ops
