// SPDX-License-Identifier: Apache-2.0
// Shared by MEAN, SUM and the REDUCE_ ops: axes, shapes, checks and the loop around a combiner.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/reduce/reduce.h"
#include "numeric/wrapping.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {

inline constexpr AttributeDoc kReduceAttributes[] = {
    {"keep_dims", "keep reduced dimensions with size 1 instead of dropping them"}};

// Checks that all reductions need: an int32 axis tensor, equal types, int16 with zero points of 0.
Status check_reduce(const OpContext& ctx);
// For reductions that do not rescale: also equal quantization.
Status check_reduce_without_rescaling(const OpContext& ctx);

// Only the last dimension goes away, or becomes 1; false where axes are computed.
bool reduces_channels_alone(const OpContext& ctx);

// The plan for the shapes and axes at hand; axes may be computed values, so this is done for every run.
Result<kernels::ReducePlan> reduce_plan(const RunContext& ctx);

template <typename T>
struct SumFunction {
  static T identity() { return T{0}; }
  static T combine(T a, T b) { return numeric::wrapping_sum(b, a); }
};

// Combines with `Function::combine`, starting from `Function::identity`. When everything is reduced to one element,
// TFLite starts from the first element instead, which shows in the sign of zeros and in NaN.
template <typename T, typename Function>
struct IdentityCombiner {
  static constexpr bool kAnyOrder = std::is_integral_v<T>;
  static constexpr bool kIsSum = std::is_same_v<Function, SumFunction<float>>;
  bool from_first;
  T start(T x) const { return from_first ? x : Function::combine(Function::identity(), x); }
  T next(T so_far, T x) const { return Function::combine(so_far, x); }
  T nothing() const { return Function::identity(); }
};

template <typename T>
struct ProductFunction {
  static T identity() { return T{1}; }
  static T combine(T a, T b) { return numeric::wrapping_product(b, a); }
};
template <typename T>
struct MaxFunction {
  static T identity() { return std::numeric_limits<T>::lowest(); }
  static T combine(T a, T b) { return b > a ? b : a; }
};
template <typename T>
struct MinFunction {
  static T identity() { return std::numeric_limits<T>::max(); }
  static T combine(T a, T b) { return b < a ? b : a; }
};

// On bools, which are bytes here: any value but 0 is true, and results are 0 or 1.
struct AnyFunction {
  static std::uint8_t identity() { return 0; }
  static std::uint8_t combine(std::uint8_t a, std::uint8_t b) { return a != 0 || b != 0 ? 1 : 0; }
};
struct AllFunction {
  static std::uint8_t identity() { return 1; }
  static std::uint8_t combine(std::uint8_t a, std::uint8_t b) { return a != 0 && b != 0 ? 1 : 0; }
};

// A kernel that combines elements of type T into outputs of the same type.
template <typename T, typename Function>
Kernel make_reduce_kernel() {
  return [](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const kernels::ReducePlan plan, reduce_plan(run));
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    const IdentityCombiner<T, Function> combiner{plan.all_dimensions_reduced && std::is_floating_point_v<T>};
    run.parallel_for(plan.split_size, kernels::reduce_grain(plan), [&](std::int64_t begin, std::int64_t end) {
      kernels::reduce(plan, input, output, combiner, begin, end);
    });
    return ok_status();
  };
}

// Prepares REDUCE_MAX and REDUCE_MIN: `Function` of numbers, `OnBools` of bools.
template <template <typename> typename Function, typename OnBools>
Result<Kernel> prepare_extreme(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce_without_rescaling(ctx));
  if (ctx.input(0).type == DataType::kBool) return make_reduce_kernel<std::uint8_t, OnBools>();
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, []<typename T>() { return make_reduce_kernel<T, Function<T>>(); });
}

// Prepares REDUCE_ALL and REDUCE_ANY.
template <typename Function>
Result<Kernel> prepare_on_bools(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kBool}));
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  return make_reduce_kernel<std::uint8_t, Function>();
}

}  // namespace reef::ops
