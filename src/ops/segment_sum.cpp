// SPDX-License-Identifier: Apache-2.0
// SEGMENT_SUM: adds up neighbouring slices (along dimension 0) that belong to the same segment.
//
// Segment ids start at 0 and grow by 0 or 1 from one slice to the next. Integers wrap around.
#include <algorithm>

#include "ir/op.h"
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/reduce.h"

namespace reef::ops {
namespace {

// Checks ids and returns the number of segments.
template <typename Ids>
Result<std::int32_t> count_segments(const Ids& ids) {
  std::int64_t last = -1;
  for (const std::int64_t id : ids) {
    REEF_REQUIRE(id == last + 1 || (id == last && last >= 0),
                 "segment ids must start at 0 and grow by at most 1; {} follows {}", id, last);
    last = id;
  }
  return static_cast<std::int32_t>(last + 1);
}

Status segment_sum_check(const OpContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  REEF_REQUIRE(data.rank() >= 1, "data ('{}') is a scalar; it has no slices", ctx.input(0).name);
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "segment ids", {DataType::kInt32}));
  REEF_REQUIRE(ctx.input(1).shape == Shape({data[0]}), "there are {} slices, but segment ids of shape {}", data[0],
               ctx.input(1).shape.to_string());
  return ok_status();
}

Status segment_sum_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(segment_sum_check(ctx));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> ids, ctx.ints(1));
  Shape output = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(output[0], count_segments(ids));
  return give_shape(ctx, std::move(output));
}

template <typename T>
Status segment_sum_run(RunContext& ctx) {
  const std::span<const std::int32_t> ids = ctx.input(1).values<std::int32_t>();
  REEF_ASSIGN_OR_RETURN(const std::int32_t segments, count_segments(ids));
  const Shape& shape = ctx.output(0).shape;
  REEF_REQUIRE(segments == shape[0], "the segment ids changed since shapes were computed");
  const std::int64_t slice = shape.product(1, shape.rank());
  const T* from = ctx.input(0).values<T>().data();
  const std::span<T> output = ctx.output(0).mutable_values<T>();
  std::fill(output.begin(), output.end(), T{0});
  for (const std::int32_t id : ids) {
    T* sums = output.data() + id * slice;
    for (std::int64_t i = 0; i < slice; ++i) sums[i] = numeric::wrapping_sum(sums[i], from[i]);
    from += slice;
  }
  return ok_status();
}

Result<Kernel> segment_sum_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(segment_sum_check(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, std::int32_t>(ctx, ctx.input(0).type,
                                               []<typename T>() { return Kernel(segment_sum_run<T>); });
}

}  // namespace

constinit const OpDef segment_sum_op = define({.name = name_of(Op::SEGMENT_SUM),
                                               .summary = "Adds up slices that belong to the same segment.",
                                               .inputs = {2, 2},
                                               .types = "float32; int32; segment ids: int32",
                                               .infer = segment_sum_infer,
                                               .prepare = segment_sum_prepare,
                                               .chip = {.instead = "Use SUM of slices."}});

}  // namespace reef::ops
