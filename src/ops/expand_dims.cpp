// SPDX-License-Identifier: Apache-2.0
// EXPAND_DIMS: inserts a dimension of size 1 before dimension `input 1`; -1 puts it last.
#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status expand_dims_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::int64_t value, integer(ctx.input(1), "axis"));
  const Shape& input = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(value, input.rank() + 1));
  std::vector<std::int32_t> dims = input.dims();
  dims.insert(dims.begin() + axis, 1);
  return give_shape(ctx, Shape(std::move(dims)));
}

}  // namespace

constinit const OpDef expand_dims_op =
    define({.name = name_of(Op::EXPAND_DIMS),
            .summary = "Inserts a dimension of size 1.",
            .inputs = {2, 2},
            .types = "any type with a fixed element size",
            .same_bytes = true,
            .form = Form::kMove,
            .traits = trait_set({Trait::kRearranges, Trait::kScalesByChannel}),
            .infer = expand_dims_infer,
            .prepare = prepare_same_bytes,
            .chip = {.first_runtime = 12, .parameters = input_set({1}), .evidence = chip::kStamped12}});

}  // namespace reef::ops
