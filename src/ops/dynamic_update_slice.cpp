// SPDX-License-Identifier: Apache-2.0
// DYNAMIC_UPDATE_SLICE: input 0 with the box from input 2 on replaced by input 1. As in XLA, a start that would put the
// box partly outside is moved so that it fits.
#include <algorithm>

#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status dynamic_update_slice_run(RunContext& ctx) {
  const Tensor& operand = ctx.input(0);
  const Tensor& update = ctx.input(1);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(operand, "operand"));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> starts, integers(ctx.input(2), "start"));
  if (operand.elements() == 0) return ok_status();
  copy(ctx, {.loops = {}, .run_bytes = operand.elements() * bytes}, operand.data, ctx.output(0).data);
  if (update.elements() == 0) return ok_status();
  const std::vector<std::int64_t> from = dense_strides(update.shape, bytes), to = dense_strides(operand.shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < starts.size(); ++d) {
    const int dim = static_cast<int>(d);
    const std::int64_t room = operand.shape[dim] - update.shape[dim];
    moves.loops.push_back({update.shape[dim], from[d], to[d]});
    moves.to_offset += std::clamp<std::int64_t>(starts[d], 0, room) * to[d];
  }
  copy(ctx, std::move(moves), update.data, ctx.output(0).data);
  return ok_status();
}

Result<Kernel> dynamic_update_slice_prepare(PrepareContext& ctx) {
  const Tensor& operand = ctx.input(0);
  const Tensor& update = ctx.input(1);
  REEF_RETURN_IF_ERROR(check_moved(operand, ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_same_type(operand, update));
  REEF_RETURN_IF_ERROR(require_rank(operand, "operand", 0, kMaxMovedRank));
  const int rank = operand.shape.rank();
  bool fits = update.shape.rank() == rank;
  for (int d = 0; fits && d < rank; ++d) fits = update.shape[d] <= operand.shape[d];
  REEF_REQUIRE(fits, "an update of shape {} does not fit into {}", update.shape.to_string(), operand.shape.to_string());
  REEF_RETURN_IF_ERROR(require_type(ctx.input(2), "start", {DataType::kInt32, DataType::kInt64}));
  REEF_REQUIRE(ctx.input(2).shape == Shape({rank}), "start ('{}') has shape {}; [{}] is needed", ctx.input(2).name,
               ctx.input(2).shape.to_string(), rank);
  return Kernel(dynamic_update_slice_run);
}

}  // namespace

constinit const OpDef dynamic_update_slice_op = define({.name = name_of(Op::DYNAMIC_UPDATE_SLICE),
                                                        .summary = "Replaces a box of a tensor.",
                                                        .inputs = {3, 3},
                                                        .types = kWholeByteTypes,
                                                        .infer = infer_same_shape,
                                                        .prepare = dynamic_update_slice_prepare,
                                                        .chip = {.instead = "Join the parts with CONCATENATION."}});

}  // namespace reef::ops
