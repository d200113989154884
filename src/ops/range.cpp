// SPDX-License-Identifier: Apache-2.0
// RANGE: start, start + delta, start + 2 delta ... up to, but not including, limit.
//
// The output's length depends on the values. Floats are added up one by one, as in TFLite, not multiplied out.
#include <cmath>

#include "ir/op.h"
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();

// Number of elements; checked against kLongest.
template <typename T>
Result<std::int32_t> length(T start, T limit, T delta) {
  REEF_REQUIRE((delta > 0 && start <= limit) || (delta < 0 && start >= limit),
               "a range from {} to {} in steps of {} has no end", start, limit, delta);
  if constexpr (std::is_floating_point_v<T>) {
    const T count = std::ceil(std::abs((limit - start) / delta));
    REEF_REQUIRE(count < static_cast<T>(kLongest), "a range from {} to {} in steps of {} is too long", start, limit,
                 delta);
    return static_cast<std::int32_t>(count);
  } else {
    // Distances of 64-bit numbers fit 64 bits without sign.
    const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(limit);
    const std::uint64_t distance = delta > 0 ? to - from : from - to;
    const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta) : -static_cast<std::uint64_t>(delta);
    const std::uint64_t count = distance / step + (distance % step != 0 ? 1 : 0);
    REEF_REQUIRE(count <= static_cast<std::uint64_t>(kLongest), "a range from {} to {} in steps of {} is too long",
                 start, limit, delta);
    return static_cast<std::int32_t>(count);
  }
}

Status range_check(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "start", {DataType::kFloat32, DataType::kInt32, DataType::kInt64}));
  for (int i = 0; i < 3; ++i) {
    REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(i)));
    REEF_RETURN_IF_ERROR(require_rank(ctx.input(i), "input", 0, 0));
  }
  return ok_status();
}

template <typename T>
Result<std::int32_t> length_of(const InferContext& ctx) {
  return length(ctx.input(0).values<T>()[0], ctx.input(1).values<T>()[0], ctx.input(2).values<T>()[0]);
}

Status range_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(range_check(ctx));
  for (int i = 0; i < 3; ++i) REEF_RETURN_IF_ERROR(ctx.require_value(i));
  const DataType type = ctx.input(0).type;
  REEF_ASSIGN_OR_RETURN(const std::int32_t size, type == DataType::kFloat32 ? length_of<float>(ctx)
                                                 : type == DataType::kInt32 ? length_of<std::int32_t>(ctx)
                                                                            : length_of<std::int64_t>(ctx));
  return give_shape(ctx, {size});
}

template <typename T>
Status range_run(RunContext& ctx) {
  const T delta = ctx.input(2).values<T>()[0];
  T value = ctx.input(0).values<T>()[0];
  for (T& element : ctx.output(0).mutable_values<T>()) {
    element = value;
    value = numeric::wrapping_sum(value, delta);
  }
  return ok_status();
}

Result<Kernel> range_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(range_check(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, std::int32_t, std::int64_t>(ctx, ctx.input(0).type,
                                                             []<typename T>() { return Kernel(range_run<T>); });
}

}  // namespace

constinit const OpDef range_op =
    define({.name = name_of(Op::RANGE),
            .summary = "Counts from a start to a limit in equal steps.",
            .inputs = {3, 3},
            .types = "float32; int32; int64",
            .infer = range_infer,
            .prepare = range_prepare,
            .chip = {.instead = "Convert the model with fixed input sizes, so that it becomes a constant.",
                     .rewrite = "fixed-shapes"}});

}  // namespace reef::ops
