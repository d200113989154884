// SPDX-License-Identifier: Apache-2.0
// FLOOR_MOD: element-wise remainder with the divisor's sign, with broadcasting.
//
// A zero divisor is an error for integers and gives NaN for floats. Quantization is ignored: stored numbers are
// divided, as in TFLite.
#include <cmath>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

template <typename T>
T floor_remainder(T a, T b) {
  T remainder = 0;
  if constexpr (std::is_floating_point_v<T>) {
    remainder = std::fmod(a, b);
  } else if (b != -1) {  // the lowest number % -1 traps on some processors; any % -1 is 0
    remainder = static_cast<T>(a % b);
  }
  return remainder != 0 && (b < 0) != (remainder < 0) ? static_cast<T>(remainder + b) : remainder;
}

template <typename T>
Kernel floor_mod_make_kernel(const PrepareContext& ctx) {
  return [divide = binary_kernel<T>(ctx, [](T a, T b) { return floor_remainder(a, b); })](RunContext& run) -> Status {
    if constexpr (!std::is_floating_point_v<T>) REEF_RETURN_IF_ERROR(require_no_zero<T>(run.input(1), 0));
    return divide(run);
  };
}

Result<Kernel> floor_mod_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  return for_element_type<float, std::int8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() { return floor_mod_make_kernel<T>(ctx); });
}

}  // namespace

constinit const OpDef floor_mod_op =
    define({.name = name_of(Op::FLOOR_MOD),
            .summary = "Element-wise remainder with the divisor's sign, with broadcasting.",
            .types = "float32; int8; int16; int32; int64",
            .form = Form::kBinary,
            .prepare = floor_mod_prepare,
            .chip = {.instead = "Divide on the CPU behind the model."}});

}  // namespace reef::ops
