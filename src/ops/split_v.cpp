// SPDX-License-Identifier: Apache-2.0
// SPLIT_V: cuts input 0 into pieces of the sizes in input 1 along the dimension that input 2 names. One size may be -1:
// it takes what the others leave.
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/split_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSplitVAttributes[] = {{"num_splits", "number of pieces, equal to the number of outputs"}};

Result<Pieces> split_v_pieces_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const std::int64_t count = ctx.attributes().get_int("num_splits");
  REEF_REQUIRE(count == ctx.output_count() && ctx.input(1).elements() == count,
               "num_splits is {}, but there are {} outputs and {} sizes", count, ctx.output_count(),
               ctx.input(1).elements());
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "sizes", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::int64_t value, integer(ctx.input(2), "axis"));
  Pieces pieces;
  REEF_ASSIGN_OR_RETURN(pieces.axis, normalize_axis(value, input.shape.rank()));
  REEF_ASSIGN_OR_RETURN(pieces.sizes, integers(ctx.input(1), "sizes"));
  std::int64_t left = input.shape[pieces.axis];
  std::size_t open = pieces.sizes.size();
  for (std::size_t i = 0; i < pieces.sizes.size(); ++i) {
    const std::int64_t size = pieces.sizes[i];
    if (size == -1) {
      REEF_REQUIRE(open == pieces.sizes.size(), "more than one size is -1");
      open = i;
      continue;
    }
    REEF_REQUIRE(size >= 0 && size <= left, "size {} of piece {} does not fit dimension {} of {}", size, i, pieces.axis,
                 input.shape.to_string());
    left -= size;
  }
  REEF_REQUIRE(open < pieces.sizes.size() || left == 0, "the sizes leave {} of dimension {} of {} over", left,
               pieces.axis, input.shape.to_string());
  if (open < pieces.sizes.size()) pieces.sizes[open] = left;
  return pieces;
}

Status split_v_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_RETURN_IF_ERROR(ctx.require_value(2));
  REEF_ASSIGN_OR_RETURN(const Pieces pieces, split_v_pieces_of(ctx));
  set_piece_shapes(ctx, ctx.input(0), pieces);
  return ok_status();
}

Result<std::vector<Move>> split_v_moves_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Pieces pieces, split_v_pieces_of(ctx));
  return split_moves(ctx, 0, pieces);
}

Result<Kernel> split_v_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_pieces(ctx, ctx.input(0)));
  return movement_kernel(ctx, {1, 2}, split_v_moves_of);
}

}  // namespace

constinit const OpDef split_v_op =
    define({.name = name_of(Op::SPLIT_V),
            .summary = "Cuts a tensor into pieces of given sizes along one dimension.",
            .inputs = {3, 3},
            .outputs = {1, kAnyNumber},
            .attributes = kSplitVAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kRearranges}),
            .infer = split_v_infer,
            .prepare = split_v_prepare,
            .chip = {.instead = "Split into equal parts (SPLIT), or cut the parts out with STRIDED_SLICE.",
                     .rewrite = "split-v"}});

}  // namespace reef::ops
