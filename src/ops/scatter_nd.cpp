// SPDX-License-Identifier: Apache-2.0
// SCATTER_ND: adds the slices of input 1 into a tensor of zeros at the index tuples in input 0; input 2 is its shape.
//
// Slices that meet are added in the order given (integers wrap around, booleans are or-ed). Quantized values are added
// as they are, without regard to their zero point, as in TFLite. An index out of range is an error.
#include <cstring>

#include "ops/index_tuples.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Result<Shape> scatter_nd_output_shape(const OpContext& ctx) {
  const Shape& indices = ctx.input(0).shape;
  const Shape& updates = ctx.input(1).shape;
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(2), "shape", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, integers(ctx.input(2), "shape"));
  REEF_ASSIGN_OR_RETURN(Shape shape, shape_from(dims));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "indices", 1, kMaxMovedRank));
  const int outer = indices.rank() - 1, depth = indices.last();
  bool fits = depth <= shape.rank() && updates.rank() == outer + shape.rank() - depth;
  for (int d = 0; fits && d < outer; ++d) fits = updates[d] == indices[d];
  for (int d = depth; fits && d < shape.rank(); ++d) fits = updates[outer + d - depth] == shape[d];
  REEF_REQUIRE(fits, "indices of shape {} and updates of shape {} do not fit a result of shape {}", indices.to_string(),
               updates.to_string(), shape.to_string());
  return shape;
}

Status scatter_nd_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(2));
  REEF_ASSIGN_OR_RETURN(Shape shape, scatter_nd_output_shape(ctx));
  return give_shape(ctx, std::move(shape));
}

// T is unsigned for integers, so that sums wrap.
template <typename T>
Status scatter_nd_run(RunContext& ctx) {
  Tensor& output = ctx.output(0);
  REEF_ASSIGN_OR_RETURN(const Shape shape, scatter_nd_output_shape(ctx));
  REEF_RETURN_IF_ERROR(require_output_shape(output, shape));
  const Shape& index_shape = ctx.input(0).shape;
  const IndexTuples tuples(ctx.input(0), index_shape.product(0, index_shape.rank() - 1), index_shape.last(), shape);
  REEF_RETURN_IF_ERROR(tuples.check());
  if (output.elements() == 0) return ok_status();
  std::memset(output.data, 0, output.bytes);
  const std::int64_t slice = shape.product(index_shape.last(), shape.rank());
  const T* from = reinterpret_cast<const T*>(ctx.input(1).data);
  T* const to = reinterpret_cast<T*>(output.data);
  // In order and on one thread, since slices may meet.
  for (std::int64_t i = 0; i < tuples.count(); ++i) {
    T* const target = to + tuples.offset(i);
    for (std::int64_t k = 0; k < slice; ++k) target[k] = static_cast<T>(target[k] + from[i * slice + k]);
  }
  if (output.type == DataType::kBool) {
    for (std::int64_t i = 0; i < output.elements(); ++i) to[i] = static_cast<T>(to[i] != 0);
  }
  return ok_status();
}

Result<Kernel> scatter_nd_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "indices", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(2)));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(1), ctx.output(0)));
  switch (ctx.output(0).type) {
    case DataType::kFloat32:
      return Kernel(scatter_nd_run<float>);
    case DataType::kInt8:
    case DataType::kUInt8:
      return Kernel(scatter_nd_run<std::uint8_t>);
    case DataType::kInt32:
      return Kernel(scatter_nd_run<std::uint32_t>);
    case DataType::kInt64:
      return Kernel(scatter_nd_run<std::uint64_t>);
    case DataType::kBool:
      return Kernel(scatter_nd_run<std::uint8_t>);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef scatter_nd_op = define({.name = name_of(Op::SCATTER_ND),
                                              .summary = "Adds slices into a tensor of zeros at index tuples.",
                                              .inputs = {3, 3},
                                              .types = "float32; int8; uint8; int32; int64; bool",
                                              .infer = scatter_nd_infer,
                                              .prepare = scatter_nd_prepare,
                                              .chip = {.instead = "Use PAD or CONCATENATION with zeros."}});

}  // namespace reef::ops
