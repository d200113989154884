// SPDX-License-Identifier: Apache-2.0
// GELU: x times the probability that a standard normal number is below x; or, if `approximate`, its usual approximation
// by tanh. Quantized tensors by table.
//
// TFLite computes float32 with Eigen's vector functions, which differ from ours in the last bits: float results agree
// to about 1e-6, not bit for bit.
#include <cmath>
#include <cstdint>

#include "kernels/elementwise/float_functions.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kGeluAttributes[] = {{"approximate", "use the tanh approximation"}};

float exact_gelu(float x) {
  constexpr float kMinusRootOfHalf = -0.70710678118654752440f;
  return 0.5f * x * std::erfc(x * kMinusRootOfHalf);
}

float approximate_gelu(float x) {
  constexpr float kRootOfTwoOverPi = 0.79788456080286535588f;
  return 0.5f * x * (1.0f + std::tanh(kRootOfTwoOverPi * (x + 0.044715f * x * x * x)));
}

Result<Kernel> gelu_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const bool is_approximate = ctx.attributes().get_bool("approximate");
  const auto gelu = is_approximate ? approximate_gelu : exact_gelu;
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(is_approximate ? kernels::gelus_by_tanh : kernels::gelus);
    case DataType::kInt8:
      return table8_kernel<std::int8_t>(ctx, gelu);
    case DataType::kUInt8:
      return table8_kernel<std::uint8_t>(ctx, gelu);
    case DataType::kInt16:
      return table16_kernel(ctx, gelu);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef gelu_op =
    define({.name = name_of(Op::GELU),
            .summary = "Gaussian error linear unit.",
            .attributes = kGeluAttributes,
            .types = "float32; int8; uint8; int16",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kKeepsNonNegative}),
            .prepare = gelu_prepare,
            .chip = {.first_runtime = 10,
                     .evidence = "Reef's own activation table; Google's compilers leave it on the CPU. Nothing of it "
                                 "has run on silicon."}});

}  // namespace reef::ops
