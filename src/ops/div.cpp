// SPDX-License-Identifier: Apache-2.0
// DIV: element-wise quotient with broadcasting and a fused activation.
//
// float32: x / 0 is the largest finite number, not infinity, because TFLite limits the result to the finite range even
// without an activation; 0 / 0 is NaN. int32: truncated; INT32_MIN / -1 is INT32_MAX. Integer and quantized division by
// zero is an error, as in TFLite. Quantized: kernels/elementwise/divide.h.
#include "kernels/elementwise/divide.h"
#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"
#include "ops/table_functions.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kDivAttributes[] = {
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1, applied to the quotient"}};

// A kernel that refuses `zero` among the divisors and then divides.
template <typename T, typename F>
Kernel checked_kernel(const PrepareContext& ctx, T zero, F f) {
  return [zero, divide = binary_kernel<T>(ctx, f)](RunContext& run) -> Status {
    REEF_RETURN_IF_ERROR(require_no_zero<T>(run.input(1), zero));
    return divide(run);
  };
}

template <typename T>
Result<Kernel> div_prepare_quantized(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams a, per_tensor_quantization(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const QuantParams b, per_tensor_quantization(ctx.input(1), "input 1"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  // In single precision, as TFLite does.
  const numeric::Multiplier factor = numeric::make_multiplier(a.scale / (b.scale * out.scale));
  const kernels::Requantize result{factor, out.zero_point, range.min, range.max};
  return checked_kernel<T>(ctx, static_cast<T>(b.zero_point), [=](T x, T y) {
    return static_cast<T>(result.finish(kernels::divide_as_shipped(x - a.zero_point, y - b.zero_point, factor)));
  });
}

Result<Kernel> div_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32: {
      REEF_ASSIGN_OR_RETURN(const Range<float> range, plain_activation_range<float>(ctx.attributes()));
      return binary_kernel<float>(ctx, [=](float a, float b) { return limit_to(range, a / b); });
    }
    case DataType::kInt32: {
      using Int = std::int32_t;
      REEF_ASSIGN_OR_RETURN(const Range<Int> range, plain_activation_range<Int>(ctx.attributes()));
      return checked_kernel<Int>(ctx, 0, [=](Int a, Int b) {
        const bool overflows = a == std::numeric_limits<Int>::min() && b == -1;
        return limit_to(range, overflows ? std::numeric_limits<Int>::max() : a / b);
      });
    }
    case DataType::kInt8:
      return div_prepare_quantized<std::int8_t>(ctx);
    case DataType::kUInt8:
      return div_prepare_quantized<std::uint8_t>(ctx);
    case DataType::kInt16:
      return div_prepare_quantized<std::int16_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

std::string divides_computed(const OpContext& ctx) {
  return has_table(ctx.op()) ? "" : "it divides by something computed";
}

constexpr ChipRule kDivChipRules[] = {{
    .id = "div-numerator",
    .says = "The first operand is a constant of one number, and one pass by a table of Reef's own comes near enough.",
    .suggestion = "Multiply by the reciprocal: a constant one with MUL, or RSQRT of the square.",
    .broken = divides_computed,
    .status = GoogleStatus::kNotSupported,
    .source = RuleSource::kCoralDocs,
    .evidence = "Table 1 has no DIV.",
    .rewrite = "one-pass",
}};

}  // namespace

constinit const OpDef div_op =
    define({.name = name_of(Op::DIV),
            .summary = "Element-wise quotient, with broadcasting.",
            .attributes = kDivAttributes,
            .types = "float32; int8; uint8; int16; int32",
            .form = Form::kBinary,
            .traits = trait_set({Trait::kTakesActivation, Trait::kBroadcasts, Trait::kKeepsNonNegative}),
            .prepare = div_prepare,
            .chip = {.first_runtime = 10,
                     .rules = kDivChipRules,
                     .evidence = "Reef's own activation table; Google's compilers leave it on the CPU. Nothing of it "
                                 "has run on silicon."}});

}  // namespace reef::ops
