// SPDX-License-Identifier: Apache-2.0
// Sums and differences, plain and quantized.
//
// Quantized operands are shifted left (20 bits for 8-bit types, 15 for 16-bit ones), multiplied down to twice the
// larger of both scales, added, and multiplied to the output's scale: three roundings, as in TFLite's reference
// kernels. 16-bit tensors have an older path besides, from the days of quantized LSTM cells: when the operator asks for
// it (pot_scale_int16, the default) and all scales are powers of two, one operand is shifted right to the other's
// scale.
#include "ops/add_sub.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/elementwise.h"

namespace reef::ops {
namespace {

using kernels::OperandRescale;
using kernels::Requantize;
using kernels::Rescale;

template <typename T>
Result<Kernel> add_sub_prepare_plain(const PrepareContext& ctx, SumSign sign) {
  REEF_ASSIGN_OR_RETURN(const Range<T> range, plain_activation_range<T>(ctx.attributes()));
  if constexpr (std::is_floating_point_v<T>) {
    if (sign == SumSign::kPlus) return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, a + b); });
    return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, a - b); });
  } else {
    if (sign == SumSign::kPlus) {
      return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, numeric::wrapping_sum(a, b)); });
    }
    return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, numeric::wrapping_difference(a, b)); });
  }
}

// Both ways to the common scale and the way from there to the output.
struct SumScaling {
  Rescale a, b;
  Requantize result;
};

Result<SumScaling> plan_scaling(const PrepareContext& ctx, SumSign sign) {
  REEF_ASSIGN_OR_RETURN(const QuantParams a, per_tensor_quantization(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const QuantParams b, per_tensor_quantization(ctx.input(1), "input 1"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  const int left_shift = ctx.output(0).type == DataType::kInt16 ? 15 : 20;
  const double common = 2 * static_cast<double>(std::max(a.scale, b.scale));
  const double output_factor = common / (std::ldexp(1.0, left_shift) * static_cast<double>(out.scale));
  // TFLite stops the process here for ADD; SUB goes on with any factor but 1.
  REEF_REQUIRE(output_factor < 1 || (sign == SumSign::kMinus && output_factor > 1),
               "the output's scale {} is too fine for inputs of scale {} and {}", out.scale, a.scale, b.scale);
  return SumScaling{{a.zero_point, left_shift, numeric::make_multiplier(static_cast<double>(a.scale) / common)},
                    {b.zero_point, left_shift, numeric::make_multiplier(static_cast<double>(b.scale) / common)},
                    {numeric::make_multiplier(output_factor), out.zero_point, range.min, range.max}};
}

template <typename T>
Result<Kernel> add_sub_prepare_quantized(const PrepareContext& ctx, SumSign sign) {
  REEF_ASSIGN_OR_RETURN(const SumScaling scaling, plan_scaling(ctx, sign));
  if constexpr (sizeof(T) == 1) {
    return byte_pairs_kernel(ctx,
                             kernels::BytePairs::sum<T>(scaling.a, scaling.b, sign == SumSign::kMinus, scaling.result));
  }
  const OperandRescale<T> a_rescale(scaling.a), b_rescale(scaling.b);
  const Requantize result = scaling.result;
  if (sign == SumSign::kPlus) {
    return binary_kernel<T>(
        ctx, [=](T a, T b) { return static_cast<T>(result(numeric::wrapping_add(a_rescale(a), b_rescale(b)))); });
  }
  return binary_kernel<T>(
      ctx, [=](T a, T b) { return static_cast<T>(result(numeric::wrapping_sub(a_rescale(a), b_rescale(b)))); });
}

// log2 of a scale that is a power of two as far as TFLite cares (within a thousandth of an octave).
std::optional<int> exact_log2(float scale) {
  const float log2 = std::log(scale) * (1.0f / std::log(2.0f));
  const float rounded = std::round(log2);
  if (!(std::abs(log2 - rounded) < 1e-3f)) return std::nullopt;
  return static_cast<int>(rounded);
}

struct PowerOfTwoShifts {
  int a = 0, b = 0;  // to the right
};

// The shifts of the power-of-two path, or nothing when the scales call for the general one.
Result<std::optional<PowerOfTwoShifts>> power_of_two_shifts(const PrepareContext& ctx) {
  std::optional<PowerOfTwoShifts> none;
  if (!ctx.attributes().get_bool("pot_scale_int16", true)) return none;
  REEF_ASSIGN_OR_RETURN(const QuantParams a, per_tensor_quantization(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const QuantParams b, per_tensor_quantization(ctx.input(1), "input 1"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  const auto a_log2 = exact_log2(a.scale), b_log2 = exact_log2(b.scale), out_log2 = exact_log2(out.scale);
  if (!a_log2 || !b_log2 || !out_log2) return none;
  const PowerOfTwoShifts shifts{*out_log2 - *a_log2, *out_log2 - *b_log2};
  REEF_REQUIRE(
      (shifts.a == 0 || shifts.b == 0) && shifts.a >= 0 && shifts.b >= 0,
      "scales 2^{} and 2^{} with output scale 2^{}: of power-of-two scales one input's must equal the output's and the "
      "other's not exceed it; set pot_scale_int16 to false",
      *a_log2, *b_log2, *out_log2);
  REEF_REQUIRE(shifts.a <= 15 && shifts.b <= 15, "the inputs' scales 2^{} and 2^{} are too far apart", *a_log2,
               *b_log2);
  return std::optional(shifts);
}

Result<Kernel> add_sub_prepare_int16(const PrepareContext& ctx, SumSign sign) {
  for (const Tensor* tensor : {&ctx.input(0), &ctx.input(1), &ctx.output(0)}) {
    REEF_ASSIGN_OR_RETURN(const QuantParams q, per_tensor_quantization(*tensor, "operand"));
    REEF_REQUIRE(q.zero_point == 0, "'{}' is int16 with zero point {}; only 0 is supported", tensor->name,
                 q.zero_point);
  }
  REEF_ASSIGN_OR_RETURN(const std::optional<PowerOfTwoShifts> shifts, power_of_two_shifts(ctx));
  if (!shifts) return add_sub_prepare_quantized<std::int16_t>(ctx, sign);
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  const int factor = sign == SumSign::kPlus ? 1 : -1;
  return binary_kernel<std::int16_t>(ctx, [=, shifts = *shifts](std::int16_t a, std::int16_t b) {
    const std::int32_t sum = numeric::rounding_divide_by_power_of_two(a, shifts.a) +
                             factor * numeric::rounding_divide_by_power_of_two(b, shifts.b);
    return static_cast<std::int16_t>(numeric::clamp(sum, range.min, range.max));
  });
}

}  // namespace

Result<Kernel> prepare_sum(PrepareContext& ctx, SumSign sign) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return add_sub_prepare_plain<float>(ctx, sign);
    case DataType::kInt32:
      return add_sub_prepare_plain<std::int32_t>(ctx, sign);
    case DataType::kInt64:
      return add_sub_prepare_plain<std::int64_t>(ctx, sign);
    case DataType::kInt8:
      return add_sub_prepare_quantized<std::int8_t>(ctx, sign);
    case DataType::kUInt8:
      return add_sub_prepare_quantized<std::uint8_t>(ctx, sign);
    case DataType::kInt16:
      // Only ADD takes int16 as plain numbers.
      if (sign == SumSign::kPlus && !ctx.input(0).quantization->is_quantized()) {
        return add_sub_prepare_plain<std::int16_t>(ctx, sign);
      }
      return add_sub_prepare_int16(ctx, sign);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace reef::ops
