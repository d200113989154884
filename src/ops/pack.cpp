// SPDX-License-Identifier: Apache-2.0
// PACK: stacks tensors of one shape along a new dimension.
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/quantization_match.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kPackAttributes[] = {{"values_count", "number of inputs"},
                                            {"axis", "place of the new dimension; negative counts from the end"}};

Result<int> pack_axis_of(const OpContext& ctx) {
  return normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).shape.rank() + 1);
}

Status pack_infer(InferContext& ctx) {
  const std::int64_t count = ctx.attributes().get_int("values_count");
  REEF_REQUIRE(count == ctx.input_count(), "values_count is {}, but there are {} inputs", count, ctx.input_count());
  REEF_ASSIGN_OR_RETURN(const int axis, pack_axis_of(ctx));
  for (int i = 1; i < ctx.input_count(); ++i) {
    REEF_REQUIRE(ctx.has_input(i), "input {} is left out", i);
    REEF_REQUIRE(ctx.input(i).shape == ctx.input(0).shape, "inputs have shapes {} and {}; they must be the same",
                 ctx.input(0).shape.to_string(), ctx.input(i).shape.to_string());
  }
  std::vector<std::int32_t> dims = ctx.input(0).shape.dims();
  dims.insert(dims.begin() + axis, static_cast<std::int32_t>(count));
  return give_shape(ctx, Shape(std::move(dims)));
}

Status pack_run(RunContext& ctx, int axis) {
  Tensor& output = ctx.output(0);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(output, "output"));
  if (output.elements() == 0) return ok_status();
  const std::int64_t rows = output.shape.product(0, axis);
  const std::int64_t row_bytes = output.shape.product(axis + 1, output.shape.rank()) * bytes;
  for (int i = 0; i < ctx.input_count(); ++i) {
    copy(ctx, {.loops = {{rows, row_bytes, row_bytes * ctx.input_count()}}, .run_bytes = row_bytes}, ctx.input(i).data,
         output.data + i * row_bytes);
  }
  return ok_status();
}

Result<Kernel> pack_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const int axis, pack_axis_of(ctx));
  for (int i = 0; i < ctx.input_count(); ++i) {
    REEF_RETURN_IF_ERROR(check_moved(ctx.input(i), ctx.output(0)));
    REEF_RETURN_IF_ERROR(require_same_quantization(ctx.input(i), ctx.output(0)));
  }
  return Kernel([axis](RunContext& run_ctx) { return pack_run(run_ctx, axis); });
}

std::string stacks_batch(const OpContext& ctx) {
  const std::int64_t axis = ctx.attributes().get_int("axis");
  if (axis != 0 && axis != -ctx.output(0).shape.rank()) return "";
  if (ctx.input_count() < 2) return "";
  return fmt::format("{} tensors are stacked along dimension 0, to {}", ctx.input_count(),
                     chip::shape_text(ctx.output(0).shape));
}

constexpr ChipRule kPackChipRules[] = {{
    .id = "pack-batch",
    .says = "Tensors are not stacked along the outermost dimension.",
    .suggestion = "Stack along an inner dimension, or join with CONCATENATION.",
    .broken = stacks_batch,
    .evidence = "Table 1",
}};

}  // namespace

constinit const OpDef pack_op =
    define({.name = name_of(Op::PACK),
            .summary = "Stacks tensors along a new dimension.",
            .inputs = {1, kAnyNumber},
            .attributes = kPackAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kCopiesOperands}),
            .infer = pack_infer,
            .prepare = pack_prepare,
            .chip = {.first_runtime = 12, .rules = kPackChipRules, .evidence = chip::kStamped12}});

}  // namespace reef::ops
