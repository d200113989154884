// SPDX-License-Identifier: Apache-2.0
// TILE: repeats a tensor input1[d] times along each dimension d.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Result<std::vector<std::int64_t>> multiples_of(const OpContext& ctx) {
  const int rank = ctx.input(0).shape.rank();
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 0, kMaxMovedRank));
  REEF_REQUIRE(ctx.input(1).shape == Shape({rank}), "multiples ('{}') have shape {}; input '{}' needs [{}]",
               ctx.input(1).name, ctx.input(1).shape.to_string(), ctx.input(0).name, rank);
  REEF_ASSIGN_OR_RETURN(std::vector<std::int64_t> multiples, integers(ctx.input(1), "multiples"));
  for (const std::int64_t multiple : multiples) {
    REEF_REQUIRE(multiple >= 0 && multiple <= INT32_MAX, "multiple {} must be 0 or more and fit 32 bits", multiple);
  }
  return multiples;
}

Result<Shape> tiled_shape(const Shape& input, const std::vector<std::int64_t>& multiples) {
  std::vector<std::int64_t> dims(input.begin(), input.end());
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d] *= multiples[d];
  return shape_from(dims);
}

Status tile_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> multiples, multiples_of(ctx));
  REEF_ASSIGN_OR_RETURN(Shape shape, tiled_shape(ctx.input(0).shape, multiples));
  return give_shape(ctx, std::move(shape));
}

Status tile_run(RunContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> multiples, multiples_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Shape shape, tiled_shape(input.shape, multiples));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), shape));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (shape.elements() == 0) return ok_status();
  const std::vector<std::int64_t> from = dense_strides(input.shape, bytes), to = dense_strides(shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < from.size(); ++d) {
    const std::int64_t size = input.shape[static_cast<int>(d)];
    moves.loops.push_back({multiples[d], 0, size * to[d]});
    moves.loops.push_back({size, from[d], to[d]});
  }
  copy(ctx, std::move(moves), input.data, ctx.output(0).data);
  return ok_status();
}

Result<Kernel> tile_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return Kernel(tile_run);
}

std::string repeats_batch(const OpContext& ctx) {
  const auto multiples = chip::constant_integers(ctx, 1);
  if (!multiples || multiples->empty() || multiples->front() == 1) return "";
  return fmt::format("dimension 0 of input {} is repeated {} times", chip::shape_text(ctx.input(0).shape),
                     multiples->front());
}

constexpr ChipRule kTileChipRules[] = {{
    .id = "tile-batch",
    .says = "The outermost dimension is not repeated.",
    .suggestion = "Repeat inner dimensions only.",
    .broken = repeats_batch,
    .source = RuleSource::kAssumed,
    .evidence = "As for every other op.",
}};

}  // namespace

constinit const OpDef tile_op =
    define({.name = name_of(Op::TILE),
            .summary = "Repeats a tensor along its dimensions.",
            .inputs = {2, 2},
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .infer = tile_infer,
            .prepare = tile_prepare,
            .chip = {.first_runtime = 12,
                     .rules = kTileChipRules,
                     .parameters = input_set({1}),
                     .evidence = "Not in Coral's table; 1x1x1x128 to 1x33x33x128 is seen mapped."}});

}  // namespace reef::ops
