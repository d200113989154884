// SPDX-License-Identifier: Apache-2.0
#include "ops/select_kernel.h"

#include "ops/broadcast.h"
#include "ops/checks.h"
#include "ops/elementwise.h"

namespace reef::ops {
namespace {

template <typename Bits>
void select_row(const std::uint8_t* condition, const Bits* x, const Bits* y, const Positions<3>& steps,
                std::int64_t count, Bits* out) {
  kernels::in_vectors([&] {
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) {
      REEF_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) out[i] = condition[i] != 0 ? x[i] : y[i];
      return;
    }
    const std::int64_t of_condition = steps[0], of_x = steps[1], of_y = steps[2];
    REEF_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = condition[i * of_condition] != 0 ? x[i * of_x] : y[i * of_y];
    }
  });
}

// Elements are only copied, so an unsigned integer of their size stands for any type.
template <typename Bits>
Kernel select_kernel(BroadcastPlan<3> plan) {
  return [plan = std::move(plan)](RunContext& ctx) {
    // Read as bytes: a file may hold bools that are neither 0 nor 1.
    const std::tuple operands(ctx.input(0).values<std::uint8_t>().data(), ctx.input(1).values<Bits>().data(),
                              ctx.input(2).values<Bits>().data());
    Bits* out = ctx.output(0).mutable_values<Bits>().data();
    ctx.parallel_for(plan.elements(), kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      plan.for_each_run(begin, end, operands,
                        [&](std::int64_t first, const std::uint8_t* condition, const Bits* x, const Bits* y,
                            const Positions<3>& steps,
                            std::int64_t count) { select_row(condition, x, y, steps, count, out + first); });
    });
    return ok_status();
  };
}

}  // namespace

bool keeps_declared_shape(const OpContext& ctx) {
  const auto one_element = [](const Tensor& tensor) { return tensor.shape.checked_elements() == 1; };
  return one_element(ctx.input(0)) && one_element(ctx.input(1)) && one_element(ctx.input(2)) &&
         one_element(ctx.output(0));
}

Result<Kernel> prepare_select(PrepareContext& ctx, const Shape& condition_shape) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 3));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "condition", {DataType::kBool}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(1), ctx.input(2)));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(1), ctx.output(0)));
  BroadcastPlan<3> plan(ctx.output(0).shape, {&condition_shape, &ctx.input(1).shape, &ctx.input(2).shape});
  switch (ir::bits_per_element(ctx.input(1).type)) {
    case 8:
      return select_kernel<std::uint8_t>(std::move(plan));
    case 16:
      return select_kernel<std::uint16_t>(std::move(plan));
    case 32:
      return select_kernel<std::uint32_t>(std::move(plan));
    case 64:
      return select_kernel<std::uint64_t>(std::move(plan));
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace reef::ops
