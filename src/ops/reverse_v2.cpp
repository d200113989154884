// SPDX-License-Identifier: Apache-2.0
// REVERSE_V2: turns the order of elements around along the dimensions that input 1 lists.
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Result<std::vector<bool>> reversed_axes(const OpContext& ctx) {
  const int rank = ctx.input(0).shape.rank();
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "axes", 0, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, integers(ctx.input(1), "axes"));
  std::vector<bool> reversed(static_cast<std::size_t>(rank));
  for (const std::int64_t value : values) {
    REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, rank));
    REEF_REQUIRE(!reversed[at(axis)], "dimension {} is listed twice", axis);
    reversed[at(axis)] = true;
  }
  return reversed;
}

Status reverse_v2_run(RunContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::vector<bool> reversed, reversed_axes(ctx));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (input.elements() == 0) return ok_status();
  const std::vector<std::int64_t> strides = dense_strides(input.shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < strides.size(); ++d) {
    const std::int64_t size = input.shape[static_cast<int>(d)];
    moves.loops.push_back({size, reversed[d] ? -strides[d] : strides[d], strides[d]});
    if (reversed[d]) moves.from_offset += (size - 1) * strides[d];
  }
  copy(ctx, std::move(moves), input.data, ctx.output(0).data);
  return ok_status();
}

Result<Kernel> reverse_v2_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 1, kMaxMovedRank));
  return Kernel(reverse_v2_run);
}

}  // namespace

constinit const OpDef reverse_v2_op =
    define({.name = name_of(Op::REVERSE_V2),
            .summary = "Reverses the order of elements along dimensions.",
            .inputs = {2, 2},
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .infer = infer_same_shape,
            .prepare = reverse_v2_prepare,
            .chip = {.instead = "Reverse on the CPU before the model, or reverse the weights behind it.",
                     .rewrite = "gather"}});

}  // namespace reef::ops
