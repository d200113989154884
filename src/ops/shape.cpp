// SPDX-License-Identifier: Apache-2.0
// SHAPE: the sizes of a tensor's dimensions, as a tensor. It does not look at its input's values.
#include <algorithm>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kShapeAttributes[] = {{"out_type", "INT32 or INT64; the output tensor's own type decides"}};

Status shape_infer(InferContext& ctx) { return give_shape(ctx, {ctx.input(0).shape.rank()}); }

template <typename T>
Status shape_run(RunContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  std::copy(shape.begin(), shape.end(), ctx.output(0).mutable_values<T>().begin());
  return ok_status();
}

Result<Kernel> shape_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt32, DataType::kInt64}));
  return ctx.output(0).type == DataType::kInt32 ? Kernel(shape_run<std::int32_t>) : Kernel(shape_run<std::int64_t>);
}

}  // namespace

constinit const OpDef shape_op = define(
    {.name = name_of(Op::SHAPE),
     .summary = "Gives the sizes of a tensor's dimensions.",
     .attributes = kShapeAttributes,
     .types = "any (output int32 or int64)",
     .value_from_shapes = true,
     .infer = shape_infer,
     .prepare = shape_prepare,
     .chip = {
         .instead = "Convert the model with fixed input sizes: what is computed from shapes then becomes constant.",
         .rewrite = "fold-constants"}});

}  // namespace reef::ops
