// SPDX-License-Identifier: Apache-2.0
// SPARSE_TO_DENSE: a tensor of the shape in input 1, filled with the default (input 3), with the values of input 2 put
// at the places in input 0: a scalar or vector of places in a vector, or a matrix with one place per row.
//
// Where places repeat, the last value counts. An index out of range is an error (TFLite writes outside of the tensor).
#include <cstring>

#include "ops/index_tuples.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSparseToDenseAttributes[] = {{"validate_indices", "ignored: indices are always checked"}};

Result<Shape> sparse_to_dense_output_shape(const OpContext& ctx) {
  const Shape& indices = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "indices", 0, 2));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "shape", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, integers(ctx.input(1), "shape"));
  REEF_ASSIGN_OR_RETURN(Shape shape, shape_from(dims));
  const int depth = indices.rank() == 2 ? indices[1] : 1;
  REEF_REQUIRE(shape.rank() == depth, "indices of shape {} do not fit a result of shape {}", indices.to_string(),
               shape.to_string());
  return shape;
}

Status sparse_to_dense_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_ASSIGN_OR_RETURN(Shape shape, sparse_to_dense_output_shape(ctx));
  return give_shape(ctx, std::move(shape));
}

std::int64_t place_count(const Shape& indices) { return indices.rank() == 0 ? 1 : indices[0]; }

Status sparse_to_dense_run(RunContext& ctx) {
  Tensor& output = ctx.output(0);
  const Tensor& values = ctx.input(2);
  REEF_ASSIGN_OR_RETURN(const Shape shape, sparse_to_dense_output_shape(ctx));
  REEF_RETURN_IF_ERROR(require_output_shape(output, shape));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(output, "output"));
  const IndexTuples places(ctx.input(0), place_count(ctx.input(0).shape), shape.rank(), shape);
  REEF_RETURN_IF_ERROR(places.check());
  if (output.elements() == 0) return ok_status();
  kernels::fill(ctx.environment()->threads(), output.data, output.elements(), ctx.input(3).data,
                static_cast<std::size_t>(bytes));
  const std::int64_t value_stride = values.shape.rank() == 0 ? 0 : bytes;
  for (std::int64_t i = 0; i < places.count(); ++i) {
    std::memcpy(output.data + places.offset(i) * bytes, values.data + i * value_stride,
                static_cast<std::size_t>(bytes));
  }
  return ok_status();
}

Result<Kernel> sparse_to_dense_prepare(PrepareContext& ctx) {
  const Tensor& values = ctx.input(2);
  REEF_RETURN_IF_ERROR(check_moved(values, ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_same_type(values, ctx.input(3)));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "indices", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "indices", 0, 2));
  REEF_RETURN_IF_ERROR(require_rank(values, "values", 0, 1));
  REEF_REQUIRE(values.elements() == place_count(ctx.input(0).shape), "there are {} values for {} places",
               values.elements(), place_count(ctx.input(0).shape));
  REEF_REQUIRE(ctx.input(3).elements() == 1, "the default ('{}') has shape {}; one element is needed",
               ctx.input(3).name, ctx.input(3).shape.to_string());
  return Kernel(sparse_to_dense_run);
}

}  // namespace

constinit const OpDef sparse_to_dense_op =
    define({.name = name_of(Op::SPARSE_TO_DENSE),
            .summary = "Puts values into a tensor of equal elements.",
            .inputs = {4, 4},
            .attributes = kSparseToDenseAttributes,
            .types = kWholeByteTypes,
            .infer = sparse_to_dense_infer,
            .prepare = sparse_to_dense_prepare,
            .chip = {.instead = "Prepare dense tensors on the CPU before the model."}});

}  // namespace reef::ops
