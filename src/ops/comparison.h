// SPDX-License-Identifier: Apache-2.0
// The six comparisons: element-wise with broadcasting, giving bools.
//
// Quantized operands are compared by value: both are rescaled by their own scale, keeping 8 fractional bits, so values
// closer than that compare as equal, as in TFLite. int16 is rescaled by EQUAL and NOT_EQUAL only; the orderings compare
// the stored numbers.
#pragma once

#include "kernels/elementwise/rescale.h"
#include "ops/checks.h"
#include "ops/elementwise.h"

namespace reef::ops {

// The way of a quantized operand to the scale that both are compared in.
Result<kernels::Rescale> comparison_rescale(const Tensor& tensor, std::string_view role);

// Compares string tensors; `equal_means` is the result for equal strings.
Kernel string_equality_kernel(const OpContext& ctx, bool equal_means);

template <typename T, typename Compare>
Kernel plain_comparison(const OpContext& ctx) {
  return binary_kernel<T, bool>(ctx, [](T a, T b) { return Compare()(a, b); });
}

template <typename T, typename Compare>
Result<Kernel> quantized_comparison(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const kernels::Rescale a, comparison_rescale(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const kernels::Rescale b, comparison_rescale(ctx.input(1), "input 1"));
  const kernels::OperandRescale<T> a_rescale(a), b_rescale(b);
  return binary_kernel<T, bool>(ctx, [=](T x, T y) { return Compare()(a_rescale(x), b_rescale(y)); });
}

// Types that every comparison has.
template <typename Compare>
Result<Kernel> prepare_ordering(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(1)));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kBool}));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> {
        if constexpr (sizeof(T) == 1) {
          return quantized_comparison<T, Compare>(ctx);
        } else {
          return plain_comparison<T, Compare>(ctx);
        }
      });
}

// Compare is std::equal_to<> or std::not_equal_to<>.
template <typename Compare>
Result<Kernel> prepare_equality(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(1)));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kBool}));
  switch (ctx.input(0).type) {
    case DataType::kString:
      return string_equality_kernel(ctx, Compare()(0, 0));
    case DataType::kBool:  // any byte but 0 is true
      return binary_kernel<std::uint8_t, bool>(
          ctx, [](std::uint8_t a, std::uint8_t b) { return Compare()(a != 0, b != 0); });
    case DataType::kInt16:
      if (ctx.input(0).quantization->is_quantized()) return quantized_comparison<std::int16_t, Compare>(ctx);
      [[fallthrough]];
    default:
      return prepare_ordering<Compare>(ctx);
  }
}

}  // namespace reef::ops
