// SPDX-License-Identifier: Apache-2.0
// SLICE: the box of `size` elements from `begin` on. A size of -1 means everything behind begin.
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

struct SliceBox {
  std::vector<std::int64_t> begin, size;
};

Result<SliceBox> box_of(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 0, kMaxMovedRank));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(1), ctx.input(2)));
  for (int i = 1; i < 3; ++i) {
    REEF_REQUIRE(ctx.input(i).shape == Shape({input.rank()}),
                 "'{}' has shape {}; input '{}' of {} dimensions needs [{}]", ctx.input(i).name,
                 ctx.input(i).shape.to_string(), ctx.input(0).name, input.rank(), input.rank());
  }
  SliceBox box;
  REEF_ASSIGN_OR_RETURN(box.begin, integers(ctx.input(1), "begin"));
  REEF_ASSIGN_OR_RETURN(box.size, integers(ctx.input(2), "size"));
  for (std::size_t d = 0; d < box.begin.size(); ++d) {
    const std::int64_t available = input[static_cast<int>(d)];
    const std::int64_t begin = box.begin[d];
    REEF_REQUIRE(begin >= 0 && begin <= available && box.size[d] >= -1 && box.size[d] <= available - begin,
                 "begin {} and size {} do not fit dimension {} of {}", begin, box.size[d], d, input.to_string());
    if (box.size[d] == -1) box.size[d] = available - begin;
  }
  return box;
}

Status slice_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_RETURN_IF_ERROR(ctx.require_value(2));
  REEF_ASSIGN_OR_RETURN(const SliceBox box, box_of(ctx));
  REEF_ASSIGN_OR_RETURN(Shape shape, shape_from(box.size));
  return give_shape(ctx, std::move(shape));
}

Result<std::vector<Move>> slice_moves_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const SliceBox box, box_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Shape shape, shape_from(box.size));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), shape));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (shape.elements() == 0) return std::vector<Move>{};
  const std::vector<std::int64_t> from = dense_strides(input.shape, bytes), to = dense_strides(shape, bytes);
  kernels::StridedCopy moves{.loops = {}, .run_bytes = bytes};
  for (std::size_t d = 0; d < from.size(); ++d) {
    moves.loops.push_back({box.size[d], from[d], to[d]});
    moves.from_offset += box.begin[d] * from[d];
  }
  return std::vector<Move>{{0, 0, std::move(moves)}};
}

Result<Kernel> slice_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return movement_kernel(ctx, {1, 2}, slice_moves_of);
}

}  // namespace

constinit const OpDef slice_op = define({.name = name_of(Op::SLICE),
                                         .summary = "Takes a box out of a tensor.",
                                         .inputs = {3, 3},
                                         .types = kWholeByteTypes,
                                         .form = Form::kMove,
                                         .traits = trait_set({Trait::kRearranges, Trait::kScalesByChannel}),
                                         .infer = slice_infer,
                                         .prepare = slice_prepare,
                                         .chip = {.first_runtime = 10, .parameters = input_set({1, 2})}});

}  // namespace reef::ops
