// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE: permutes dimensions. output[i0, i1, ...] = input[...] where output dimension d is input dimension perm[d].
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

// Input dimension of each output dimension, negative entries counted from the end.
Result<std::vector<int>> permutation(const OpContext& ctx) {
  const int rank = ctx.input(0).shape.rank();
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 0, kMaxMovedRank));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "permutation", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, integers(ctx.input(1), "permutation"));
  REEF_REQUIRE(static_cast<int>(values.size()) == rank, "the permutation has {} entries for {} dimensions",
               values.size(), rank);
  std::vector<int> axes;
  std::vector<bool> seen(static_cast<std::size_t>(rank));
  for (const std::int64_t value : values) {
    REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, rank));
    REEF_REQUIRE(!seen[static_cast<std::size_t>(axis)], "dimension {} occurs twice in the permutation", axis);
    seen[static_cast<std::size_t>(axis)] = true;
    axes.push_back(axis);
  }
  return axes;
}

Shape permuted(const Shape& shape, const std::vector<int>& axes) {
  Shape result;
  for (const int axis : axes) result.push_back(shape[axis]);
  return result;
}

Status infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, permutation(ctx));
  ctx.set_output_shape(0, permuted(ctx.input(0).shape, axes));
  return ok_status();
}

Status run(RunContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, permutation(ctx));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), permuted(input.shape, axes)));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  const std::vector<std::int64_t> from = dense_strides(input.shape, bytes);
  const std::vector<std::int64_t> to = dense_strides(ctx.output(0).shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const auto axis = static_cast<std::size_t>(axes[d]);
    moves.loops.push_back({input.shape[axes[d]], from[axis], to[d]});
  }
  copy(ctx, std::move(moves), input.data, ctx.output(0).data);
  return ok_status();
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return Kernel(run);
}

}  // namespace

extern const OpDef transpose_op;
constinit const OpDef transpose_op = define({.name = "TRANSPOSE",
                                             .summary = "Permutes the dimensions.",
                                             .inputs = {2, 2},
                                             .types = kWholeByteTypes,
                                             .infer = infer,
                                             .prepare = prepare});

}  // namespace reef::ops
