// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <algorithm>

#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/op_def.h"
#include "ops/same_quantization.h"

namespace reef::ops {
namespace {

// Which dimensions go away. Axes may repeat and count from the end; for a scalar they mean nothing.
template <typename Axes>
Result<std::vector<bool>> reduced_dimensions(const Axes& axes, int rank) {
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  if (rank == 0) return reduced;
  for (const std::int64_t axis : axes) {
    REEF_ASSIGN_OR_RETURN(const int dimension, normalize_axis(axis, rank));
    reduced[at(dimension)] = true;
  }
  return reduced;
}

}  // namespace

Status infer_reduce(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "axis", {DataType::kInt32}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> axes, ctx.ints(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<bool> reduced, reduced_dimensions(axes, input.rank()));
  const bool keep_dims = ctx.attributes().get_bool("keep_dims");
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (!reduced[at(i)]) {
      output.push_back(input[i]);
    } else if (keep_dims) {
      output.push_back(1);
    }
  }
  return give_shape(ctx, std::move(output));
}

Status check_reduce(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "axis", {DataType::kInt32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.input(0).type == DataType::kInt16) {
    for (const Tensor* tensor : {&ctx.input(0), &ctx.output(0)}) {
      const std::vector<std::int64_t>& zero_points = tensor->quantization->zero_point;
      REEF_REQUIRE(zero_points.empty() || zero_points[0] == 0, "'{}' is int16 with zero point {}; it must be 0",
                   tensor->name, zero_points[0]);
    }
  }
  return ok_status();
}

Status check_reduce_without_rescaling(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(check_reduce(ctx));
  const DataType type = ctx.input(0).type;
  if (ir::is_integer_8(type) || type == DataType::kInt16) {
    REEF_RETURN_IF_ERROR(require_same_quantization(ctx.input(0), ctx.output(0)));
  }
  return ok_status();
}

bool reduces_channels_alone(const OpContext& ctx) {
  const auto axes = chip::named_axes(ctx);
  return axes && !axes->empty() && axes->back() && std::count(axes->begin(), axes->end(), true) == 1;
}

Result<kernels::ReducePlan> reduce_plan(const RunContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                        reduced_dimensions(ctx.input(1).values<std::int32_t>(), input.rank()));
  kernels::ReducePlan plan = kernels::plan_reduce(input.dims(), reduced);
  REEF_REQUIRE(plan.outputs == ctx.output(0).elements(), "the axes changed since shapes were computed");
  return plan;
}

}  // namespace reef::ops
