// SPDX-License-Identifier: Apache-2.0
// FLOOR_DIV: element-wise quotient rounded towards minus infinity, with broadcasting.
//
// A zero divisor is an error, for floats too. Quantization is ignored: stored numbers are divided, as in TFLite. The
// one quotient that the type cannot hold, of the lowest number and -1, is the lowest number.
#include <cmath>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

// The divisor is not 0.
template <typename T>
T floor_quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
  } else {
    const std::int64_t quotient = std::int64_t{a} / b;
    const bool rounded_up = std::int64_t{a} % b != 0 && (a < 0) != (b < 0);
    return static_cast<T>(quotient - (rounded_up ? 1 : 0));
  }
}

template <typename T>
Kernel floor_div_make_kernel(const PrepareContext& ctx) {
  return [divide = binary_kernel<T>(ctx, [](T a, T b) { return floor_quotient(a, b); })](RunContext& run) -> Status {
    REEF_RETURN_IF_ERROR(require_no_zero<T>(run.input(1), 0));
    return divide(run);
  };
}

Result<Kernel> floor_div_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  return for_element_type<float, std::int8_t, std::int16_t, std::int32_t>(
      ctx, ctx.input(0).type, [&]<typename T>() { return floor_div_make_kernel<T>(ctx); });
}

}  // namespace

constinit const OpDef floor_div_op = define({.name = name_of(Op::FLOOR_DIV),
                                             .summary = "Element-wise quotient rounded down, with broadcasting.",
                                             .types = "float32; int8; int16; int32",
                                             .form = Form::kBinary,
                                             .prepare = floor_div_prepare,
                                             .chip = {.instead = "Divide on the CPU behind the model."}});

}  // namespace reef::ops
