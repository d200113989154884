// SPDX-License-Identifier: Apache-2.0
// UNPACK: cuts a tensor into its slices along one dimension, which disappears.
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/quantization_match.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kUnpackAttributes[] = {{"num", "number of outputs, equal to the dimension's size"},
                                              {"axis", "dimension to cut; negative counts from the end"}};

Result<int> unpack_axis_of(const OpContext& ctx) {
  return normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).shape.rank());
}

Status unpack_infer(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_ASSIGN_OR_RETURN(const int axis, unpack_axis_of(ctx));
  const std::int64_t count = ctx.attributes().get_int("num");
  REEF_REQUIRE(count == ctx.output_count() && input[axis] == count,
               "num is {}, but there are {} outputs and dimension {} of {}", count, ctx.output_count(), axis,
               input.to_string());
  std::vector<std::int32_t> dims = input.dims();
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < ctx.output_count(); ++i) ctx.set_output_shape(i, Shape(dims));
  return ok_status();
}

Status unpack_run(RunContext& ctx, int axis) {
  const Tensor& input = ctx.input(0);
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  if (input.elements() == 0) return ok_status();
  const std::int64_t rows = input.shape.product(0, axis);
  const std::int64_t row_bytes = input.shape.product(axis + 1, input.shape.rank()) * bytes;
  for (int i = 0; i < ctx.output_count(); ++i) {
    copy(ctx, {.loops = {{rows, row_bytes * ctx.output_count(), row_bytes}}, .run_bytes = row_bytes},
         input.data + i * row_bytes, ctx.output(i).data);
  }
  return ok_status();
}

Result<Kernel> unpack_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const int axis, unpack_axis_of(ctx));
  for (int i = 0; i < ctx.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(i)));
    REEF_RETURN_IF_ERROR(require_same_quantization(ctx.input(0), ctx.output(i)));
  }
  return Kernel([axis](RunContext& run_ctx) { return unpack_run(run_ctx, axis); });
}

}  // namespace

constinit const OpDef unpack_op = define({.name = name_of(Op::UNPACK),
                                          .summary = "Cuts a tensor into slices of one dimension less.",
                                          .outputs = {1, kAnyNumber},
                                          .attributes = kUnpackAttributes,
                                          .types = kWholeByteTypes,
                                          .form = Form::kMove,
                                          .traits = trait_set({Trait::kRearranges}),
                                          .infer = unpack_infer,
                                          .prepare = unpack_prepare,
                                          .chip = {.instead = "Use SPLIT or STRIDED_SLICE.", .rewrite = "unpack"}});

}  // namespace reef::ops
