// SPDX-License-Identifier: Apache-2.0
// SPLIT: cuts input 1 into equal pieces along the dimension that input 0 names.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/split_family.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSplitAttributes[] = {{"num_splits", "number of pieces, equal to the number of outputs"}};

Result<Pieces> split_pieces_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(1);
  const std::int64_t count = ctx.attributes().get_int("num_splits");
  REEF_REQUIRE(count == ctx.output_count(), "num_splits is {}, but there are {} outputs", count, ctx.output_count());
  REEF_ASSIGN_OR_RETURN(const std::int64_t value, integer(ctx.input(0), "axis"));
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, input.shape.rank()));
  REEF_REQUIRE(input.shape[axis] % count == 0, "dimension {} of {} cannot be cut into {} equal pieces", axis,
               input.shape.to_string(), count);
  return Pieces{axis, std::vector<std::int64_t>(static_cast<std::size_t>(count), input.shape[axis] / count)};
}

Status split_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(0));
  REEF_ASSIGN_OR_RETURN(const Pieces pieces, split_pieces_of(ctx));
  set_piece_shapes(ctx, ctx.input(1), pieces);
  return ok_status();
}

Result<std::vector<Move>> split_moves_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Pieces pieces, split_pieces_of(ctx));
  return split_moves(ctx, 1, pieces);
}

Result<Kernel> split_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_pieces(ctx, ctx.input(1)));
  return movement_kernel(ctx, {0}, split_moves_of);
}

std::string splits_batch(const OpContext& ctx) {
  const auto axis = chip::constant_integers(ctx, 0);
  const Shape& input = ctx.input(1).shape;
  if (!axis || axis->size() != 1 || ctx.output_count() < 2) return "";
  if (axis->front() != 0 && axis->front() != -input.rank()) return "";
  return fmt::format("dimension 0 of input {} is split into {}", chip::shape_text(input), ctx.output_count());
}

constexpr ChipRule kSplitChipRules[] = {{
    .id = "split-batch",
    .says = "The outermost dimension is not split.",
    .suggestion = "Split an inner dimension; a batch is better split into several inferences.",
    .broken = splits_batch,
    .evidence = "Table 1",
}};

}  // namespace

constinit const OpDef split_op =
    define({.name = name_of(Op::SPLIT),
            .summary = "Cuts a tensor into equal pieces along one dimension.",
            .inputs = {2, 2},
            .outputs = {1, kAnyNumber},
            .attributes = kSplitAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kRearranges}),
            .infer = split_infer,
            .prepare = split_prepare,
            .chip = {.first_runtime = 10, .rules = kSplitChipRules, .parameters = input_set({0})}});

}  // namespace reef::ops
