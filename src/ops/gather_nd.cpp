// SPDX-License-Identifier: Apache-2.0
// GATHER_ND: picks slices of input 0 by index tuples, the rows of input 1.
//
// An index out of range is an error. (TFLite looks only at the resulting place in memory and so lets some pass.)
#include <cstring>

#include "ops/index_tuples.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

// Length of the index tuples.
Result<int> depth_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 1, kMaxMovedRank));
  REEF_REQUIRE(indices.shape.rank() >= 1, "indices ('{}') are a scalar; at least a vector is needed", indices.name);
  REEF_REQUIRE(indices.shape.last() <= input.shape.rank(), "index tuples have {} entries, but the input has shape {}",
               indices.shape.last(), input.shape.to_string());
  return indices.shape.last();
}

Status gather_nd_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const int depth, depth_of(ctx));
  Shape shape;
  for (int d = 0; d + 1 < ctx.input(1).shape.rank(); ++d) shape.push_back(ctx.input(1).shape[d]);
  for (int d = depth; d < ctx.input(0).shape.rank(); ++d) shape.push_back(ctx.input(0).shape[d]);
  return give_shape(ctx, std::move(shape));
}

Status gather_nd_run(RunContext& ctx, int depth) {
  const Tensor& input = ctx.input(0);
  const Shape& index_shape = ctx.input(1).shape;
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  const IndexTuples tuples(ctx.input(1), index_shape.product(0, index_shape.rank() - 1), depth, input.shape);
  REEF_RETURN_IF_ERROR(tuples.check());
  if (ctx.output(0).elements() == 0) return ok_status();
  const std::int64_t slice_bytes = input.shape.product(depth, input.shape.rank()) * bytes;
  std::byte* const to = ctx.output(0).data;
  const std::int64_t grain = std::max<std::int64_t>(64, 65536 / slice_bytes);
  ctx.parallel_for(tuples.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * slice_bytes, input.data + tuples.offset(i) * bytes, static_cast<std::size_t>(slice_bytes));
    }
  });
  return ok_status();
}

Result<Kernel> gather_nd_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(check_indices(ctx.input(1)));
  REEF_ASSIGN_OR_RETURN(const int depth, depth_of(ctx));
  REEF_REQUIRE(ctx.input(0).elements() > 0 || ctx.output(0).elements() == 0, "input '{}' has no elements to pick from",
               ctx.input(0).name);
  return Kernel([depth](RunContext& run_ctx) { return gather_nd_run(run_ctx, depth); });
}

}  // namespace

constinit const OpDef gather_nd_op = define({.name = name_of(Op::GATHER_ND),
                                             .summary = "Picks slices by index tuples.",
                                             .inputs = {2, 2},
                                             .types = kWholeByteTypes,
                                             .traits = trait_set({Trait::kKeepsNonNegative}),
                                             .infer = gather_nd_infer,
                                             .prepare = gather_nd_prepare,
                                             .chip = {.instead = "Gather on the CPU behind the model."}});

}  // namespace reef::ops
