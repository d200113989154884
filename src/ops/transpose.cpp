// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE: permutes dimensions. output[i0, i1, ...] = input[...] where output dimension d is input dimension perm[d].
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/own_code.h"

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
    REEF_REQUIRE(!seen[at(axis)], "dimension {} occurs twice in the permutation", axis);
    seen[at(axis)] = true;
    axes.push_back(axis);
  }
  return axes;
}

Shape permuted(const Shape& shape, const std::vector<int>& axes) {
  Shape result;
  for (const int axis : axes) result.push_back(shape[axis]);
  return result;
}

Status transpose_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, permutation(ctx));
  return give_shape(ctx, permuted(ctx.input(0).shape, axes));
}

Result<std::vector<Move>> transpose_moves_of(const OpContext& ctx) {
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
  return std::vector<Move>{{0, 0, std::move(moves)}};
}

Result<Kernel> transpose_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return movement_kernel(ctx, {1}, transpose_moves_of);
}

// Most elements that are seen mapped. 102,400 do not map; where the limit lies between them is not known.
constexpr std::int64_t kTransposeMostElementsOnChip = 82944;

// Dimensions of size 1 may go anywhere without an element moving.
bool moves_elements(const OpContext& ctx) {
  const auto order = chip::constant_integers(ctx, 1);
  const Shape& input = ctx.input(0).shape;
  if (!order) return false;
  std::int64_t last = -1;
  for (std::int64_t axis : *order) {
    if (axis < 0) axis += input.rank();
    if (axis < 0 || axis >= input.rank() || input[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return true;
    last = axis;
  }
  return false;
}

std::string transpose_is_large(const OpContext& ctx) {
  if (ctx.attributes().get_bool(kOwnMovement)) return "";
  if (!moves_elements(ctx) || ctx.input(0).elements() <= kTransposeMostElementsOnChip) return "";
  return fmt::format("input is {}", chip::tensor_text(ctx.input(0)));
}

constexpr ChipRule kTransposeChipRules[] = {{
    .id = "transpose-size",
    .says = "At most 82,944 elements.",
    .suggestion = "Use a smaller input image (192 pixels for YOLOv8), or end the model before the transposition and "
                  "transpose on the CPU.",
    .broken = transpose_is_large,
    .source = RuleSource::kMeasured,
    .evidence = "24x24x144 (82,944) and 32x32x65 map; 40x40x64 (102,400), 40x40x65, 32x32x144 and larger do not; "
                "784x3x85 does not, 196x3x85 does (YOLOv5 at 224 pixels).",
    .rewrite = "yolo-head",
}};

}  // namespace

constinit const OpDef transpose_op = define(
    {.name = name_of(Op::TRANSPOSE),
     .summary = "Permutes the dimensions.",
     .inputs = {2, 2},
     .types = kWholeByteTypes,
     .form = Form::kMove,
     .traits = trait_set({Trait::kRearranges}),
     .infer = transpose_infer,
     .prepare = transpose_prepare,
     .chip = {.first_runtime = 14,
              .rules = kTransposeChipRules,
              .parameters = input_set({1}),
              .evidence = "Compilers up to 15.0 answer that the operation is not supported: edgetpu#242, #342."}});

}  // namespace reef::ops
