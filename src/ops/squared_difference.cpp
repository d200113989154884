// SPDX-License-Identifier: Apache-2.0
// SQUARED_DIFFERENCE: (a - b)^2, with broadcasting.
//
// int8: both operands are brought to twice the larger scale with 7 more bits, subtracted, squared and multiplied to the
// output's scale. int32 wraps.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/fixed_point_rows.h"
#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr int kLeftShift = 7;

Result<Kernel> squared_difference_prepare_int8(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams a, per_tensor_quantization(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const QuantParams b, per_tensor_quantization(ctx.input(1), "input 1"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  const double common = 2 * static_cast<double>(std::max(a.scale, b.scale));
  const double output_factor = common * common / (std::ldexp(1.0, 2 * kLeftShift) * static_cast<double>(out.scale));
  REEF_REQUIRE(output_factor < 1, "the output's scale {} is too fine for inputs of scale {} and {}", out.scale, a.scale,
               b.scale);
  kernels::SquaredDifference squares;
  squares.x_scaling = {a.zero_point, kLeftShift, numeric::make_multiplier(static_cast<double>(a.scale) / common)};
  squares.y_scaling = {b.zero_point, kLeftShift, numeric::make_multiplier(static_cast<double>(b.scale) / common)};
  squares.result = {numeric::make_multiplier(output_factor), out.zero_point, -128, 127};
  return Kernel([plan = binary_plan(ctx), squares](RunContext& run) {
    using Byte = std::int8_t;
    for_each_pair_run<Byte, Byte, Byte>(
        run, plan, [&](Byte* to, const Byte* x, const Byte* y, const Positions<2>& steps, std::int64_t count) {
          squares.row(x, steps[0], y, steps[1], to, count);
        });
    return ok_status();
  });
}

Result<Kernel> squared_difference_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return binary_kernel<float>(ctx, [](float a, float b) { return (a - b) * (a - b); });
    case DataType::kInt32:
      return binary_kernel<std::int32_t>(ctx, [](std::int32_t a, std::int32_t b) {
        const std::int32_t difference = numeric::wrapping_sub(a, b);
        return numeric::wrapping_mul(difference, difference);
      });
    case DataType::kInt8:
      return squared_difference_prepare_int8(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef squared_difference_op = define({.name = name_of(Op::SQUARED_DIFFERENCE),
                                                      .summary = "Element-wise squared difference, with broadcasting.",
                                                      .types = "float32; int8; int32",
                                                      .form = Form::kBinary,
                                                      .traits = trait_set({Trait::kBroadcasts, Trait::kNeverNegative}),
                                                      .prepare = squared_difference_prepare,
                                                      .chip = {.first_runtime = 14}});

}  // namespace reef::ops
