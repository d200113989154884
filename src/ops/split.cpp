// SPDX-License-Identifier: Apache-2.0
// SPLIT: cuts input 1 into equal pieces along the dimension that input 0 names.
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/split_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kAttributes[] = {{"num_splits", "number of pieces, equal to the number of outputs"}};

Result<Pieces> pieces_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(1);
  const std::int64_t count = ctx.attributes().get_int("num_splits");
  REEF_REQUIRE(count == ctx.output_count(), "num_splits is {}, but there are {} outputs", count, ctx.output_count());
  REEF_ASSIGN_OR_RETURN(const std::int64_t value, integer(ctx.input(0), "axis"));
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, input.shape.rank()));
  REEF_REQUIRE(input.shape[axis] % count == 0, "dimension {} of {} cannot be cut into {} equal pieces", axis,
               input.shape.to_string(), count);
  return Pieces{axis, std::vector<std::int64_t>(static_cast<std::size_t>(count), input.shape[axis] / count)};
}

Status infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(0));
  REEF_ASSIGN_OR_RETURN(const Pieces pieces, pieces_of(ctx));
  set_piece_shapes(ctx, ctx.input(1), pieces);
  return ok_status();
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_pieces(ctx, ctx.input(1)));
  return Kernel([](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const Pieces pieces, pieces_of(run));
    return run_split(run, run.input(1), pieces);
  });
}

}  // namespace

extern const OpDef split_op;
constinit const OpDef split_op = define({.name = "SPLIT",
                                         .summary = "Cuts a tensor into equal pieces along one dimension.",
                                         .inputs = {2, 2},
                                         .outputs = {1, kAnyNumber},
                                         .attributes = kAttributes,
                                         .types = kWholeByteTypes,
                                         .infer = infer,
                                         .prepare = prepare});

}  // namespace reef::ops
