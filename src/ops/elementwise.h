// SPDX-License-Identifier: Apache-2.0
// Shared by the binary element-wise ops: shape inference, the loop over broadcast operands, choice of the element
// type.
//
// An op supplies a function object of two elements; binary_kernel<T>(ctx, f) makes the kernel that applies it to every
// pair, in chunks on all threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "ir/type.h"
#include "kernels/elementwise/byte_pairs.h"
#include "kernels/simd/loops.h"
#include "numeric/wrapping.h"
#include "ops/broadcast.h"
#include "ops/checks.h"
#include "ops/op_context.h"

namespace reef::ops {

// Elements per chunk of work given to a thread: tens of microseconds even for the cheapest function.
inline constexpr std::int64_t kElementwiseGrain = 1 << 15;

// Refuses an op whose first `count` inputs are not all there.
Status require_inputs(const OpContext& ctx, int count);

// Both inputs and the output have one type.
Status require_uniform_types(const OpContext& ctx);

// Limits of the fused activation on plain (not quantized) numbers. Apply with limit_to, which lets NaN through.
template <typename T>
Result<Range<T>> plain_activation_range(const ir::Attributes& attributes) {
  if constexpr (std::is_same_v<T, float>) {
    REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(attributes));
    return Range<T>{range.min, range.max};
  } else {
    // uint64 is not among the types that any op fuses an activation with.
    REEF_ASSIGN_OR_RETURN(const Range<std::int64_t> range,
                          integer_activation_range(attributes, std::numeric_limits<T>::min(),
                                                   static_cast<std::int64_t>(std::numeric_limits<T>::max())));
    REEF_REQUIRE(std::in_range<T>(range.min), "RELU_N1_TO_1 cannot be fused: the type holds no negative numbers");
    return Range<T>{static_cast<T>(range.min), static_cast<T>(range.max)};
  }
}
template <typename T>
T limit_to(const Range<T>& range, T x) {
  x = x < range.min ? range.min : x;
  return range.max < x ? range.max : x;
}

// out[i] = f(a[i], b[i]) along one row. Written out by case, so that each loop is simple enough to vectorize. `out` may
// be an operand whose step is 1.
template <typename A, typename B, typename Out, typename F>
void apply_row(const A* a, std::int64_t a_step, const B* b, std::int64_t b_step, Out* out, std::int64_t count,
               const F& f) {
  if (a_step == 1 && b_step == 1) {
    REEF_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(f(a[i], b[i]));
  } else if (a_step == 1) {
    const B scalar = *b;
    REEF_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<Out>(f(a[i], scalar));
  } else {
    const A scalar = *a;
    const std::int64_t used = b_step == 0 ? 1 : count;  // with neither moving, all results are the first
    REEF_INDEPENDENT
    for (std::int64_t i = 0; i < used; ++i) out[i] = static_cast<Out>(f(scalar, b[i]));
    std::fill(out + used, out + count, out[0]);
  }
}

// run(output, first operand, second, their steps, count) for all elements, in long runs on all threads. A and B are the
// inputs' element types.
template <typename A, typename B, typename Out, typename Run>
void for_each_pair_run(RunContext& ctx, const BroadcastPlan<2>& plan, const Run& run) {
  const std::tuple operands(ctx.input(0).values<A>().data(), ctx.input(1).values<B>().data());
  Out* out = ctx.output(0).mutable_values<Out>().data();
  ctx.parallel_for(plan.elements(), kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    plan.for_each_run(begin, end, operands,
                      [&](std::int64_t first, const A* a, const B* b, const Positions<2>& steps, std::int64_t count) {
                        run(out + first, a, b, steps, count);
                      });
  });
}

template <typename A, typename Out = A, typename B = A, typename F>
void apply_binary(RunContext& ctx, const BroadcastPlan<2>& plan, const F& f) {
  for_each_pair_run<A, B, Out>(ctx, plan,
                               [&](Out* out, const A* a, const B* b, const Positions<2>& steps, std::int64_t count) {
                                 kernels::in_vectors([&] { apply_row(a, steps[0], b, steps[1], out, count, f); });
                               });
}

inline BroadcastPlan<2> binary_plan(const OpContext& ctx) {
  return BroadcastPlan<2>(ctx.output(0).shape, {&ctx.input(0).shape, &ctx.input(1).shape});
}

template <typename A, typename Out = A, typename B = A, typename F>
Kernel binary_kernel(const OpContext& ctx, F f) {
  return [plan = binary_plan(ctx), f = std::move(f)](RunContext& run) {
    apply_binary<A, Out, B>(run, plan, f);
    return ok_status();
  };
}

// For ops whose operands and result have one type, one of Ts: f of two elements of it.
template <typename... Ts, typename F>
Result<Kernel> prepare_uniform(PrepareContext& ctx, F f) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  return for_element_type<Ts...>(ctx, ctx.input(0).type, [&]<typename T>() { return binary_kernel<T>(ctx, f); });
}

// The same for f of two bools, which are read as bytes: a file may hold some that are neither 0 nor 1.
template <typename F>
Result<Kernel> prepare_logical(PrepareContext& ctx, F f) {
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input 0", {DataType::kBool}));
  return binary_kernel<std::uint8_t, bool>(ctx, f);
}

// The kernel of 8-bit sums and products.
inline Kernel byte_pairs_kernel(const OpContext& ctx, const kernels::BytePairs& pairs) {
  using Byte = std::uint8_t;
  return [plan = binary_plan(ctx), pairs](RunContext& run) {
    for_each_pair_run<Byte, Byte, Byte>(
        run, plan, [&](Byte* out, const Byte* a, const Byte* b, const Positions<2>& steps, std::int64_t count) {
          pairs.row(a, steps[0], b, steps[1], out, count);
        });
    return ok_status();
  };
}

// For ops that divide: an error if any of the divisors is `zero`.
template <typename T>
Status require_no_zero(const Tensor& divisors, T zero) {
  const std::span<const T> values = divisors.values<T>();
  const auto place = std::find(values.begin(), values.end(), zero);
  REEF_REQUIRE(place == values.end(), "division by zero: element {} of '{}' is 0", place - values.begin(),
               divisors.name);
  return ok_status();
}

}  // namespace reef::ops
