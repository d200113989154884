// SPDX-License-Identifier: Apache-2.0
// POW: element-wise power with broadcasting.
//
// TFLite has two ways, with different roundings and different overflow, and so have we: when the exponent is a single
// number that broadcasts, and within 1e-5 of a positive integer, it multiplies repeatedly in the operands' type (int32
// wraps); otherwise it calls pow, for int32 in double precision, where a result outside of int32 becomes INT32_MIN as
// x86's conversion has it. Negative int32 exponents are refused.
#include <algorithm>
#include <cmath>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

template <typename T>
T pow_product(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    return numeric::wrapping_product(a, b);
  }
}

// base^exponent by squaring, from the exponent's highest bit down. exponent >= 1.
template <typename T>
T integer_power(T base, std::int32_t exponent) {
  int bit = 30;
  while ((exponent >> bit & 1) == 0) --bit;
  T result = base;
  while (--bit >= 0) {
    result = pow_product(result, result);
    if (exponent >> bit & 1) result = pow_product(result, base);
  }
  return result;
}

float general_power(float base, float exponent) { return std::pow(base, exponent); }

std::int32_t general_power(std::int32_t base, std::int32_t exponent) {
  const double power = std::pow(static_cast<double>(base), static_cast<double>(exponent));
  if (power > -2147483649.0 && power < 2147483648.0) return static_cast<std::int32_t>(power);
  return std::numeric_limits<std::int32_t>::min();
}

// The integer that a lone exponent stands for, or 0 when it calls for the general way.
std::int32_t lone_integer_exponent(std::int32_t exponent) { return std::max(exponent, 0); }
std::int32_t lone_integer_exponent(float exponent) {
  const float rounded = std::round(exponent);
  if (!(rounded >= 1.0f && rounded < 2147483648.0f)) return 0;
  return std::abs(exponent - rounded) < 1e-5f ? static_cast<std::int32_t>(rounded) : 0;
}

template <typename T>
Status pow_run(RunContext& ctx, const BroadcastPlan<2>& plan) {
  const std::span<const T> exponents = ctx.input(1).values<T>();
  if constexpr (!std::is_floating_point_v<T>) {
    REEF_REQUIRE(std::all_of(exponents.begin(), exponents.end(), [](T e) { return e >= 0; }),
                 "an exponent in '{}' is negative; int32 powers need exponents of 0 or more", ctx.input(1).name);
  }
  if (exponents.size() == 1 && ctx.input(0).shape != ctx.input(1).shape) {
    const std::int32_t exponent = lone_integer_exponent(exponents[0]);
    if (exponent >= 1) {
      apply_binary<T>(ctx, plan, [=](T base, T) { return integer_power(base, exponent); });
      return ok_status();
    }
  }
  apply_binary<T>(ctx, plan, [](T base, T exponent) { return general_power(base, exponent); });
  return ok_status();
}

Result<Kernel> pow_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  return for_element_type<float, std::int32_t>(ctx, ctx.input(0).type, [&]<typename T>() -> Kernel {
    return [plan = binary_plan(ctx)](RunContext& run_ctx) { return pow_run<T>(run_ctx, plan); };
  });
}

}  // namespace

constinit const OpDef pow_op = define({.name = name_of(Op::POW),
                                       .summary = "Element-wise power, with broadcasting.",
                                       .types = "float32; int32",
                                       .form = Form::kBinary,
                                       .prepare = pow_prepare,
                                       .chip = {.instead = "Use MUL for squares and RSQRT for roots."}});

}  // namespace reef::ops
