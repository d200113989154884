// SPDX-License-Identifier: Apache-2.0
// GATHER: picks slices of dimension `axis` of input 0 by the indices in input 1.
//
// output[b..., o..., i..., k...] = input[b..., o..., indices[b..., i...], k...], where b runs over the first batch_dims
// dimensions, which input and indices share, and o over those between them and the axis. An index out of range is an
// error, also a negative one.
#include <cstring>

#include "ops/movement.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kGatherAttributes[] = {{"axis", "dimension to pick from; negative counts from the end"},
                                              {"batch_dims", "leading dimensions that input and indices share"}};

struct Dims {
  int axis = 0;
  int batch = 0;
};

Result<Dims> dims_of(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const Shape& indices = ctx.input(1).shape;
  Dims dims;
  REEF_ASSIGN_OR_RETURN(dims.axis, normalize_axis(ctx.attributes().get_int("axis"), input.rank()));
  std::int64_t batch = ctx.attributes().get_int("batch_dims");
  if (batch < 0) batch += indices.rank();
  REEF_REQUIRE(batch >= 0 && batch <= dims.axis && batch <= indices.rank(),
               "batch_dims is {}; axis {} and indices of shape {} do not allow it", batch, dims.axis,
               indices.to_string());
  dims.batch = static_cast<int>(batch);
  for (int d = 0; d < dims.batch; ++d) {
    REEF_REQUIRE(input[d] == indices[d], "input of shape {} and indices of shape {} differ in batch dimension {}",
                 input.to_string(), indices.to_string(), d);
  }
  return dims;
}

Status gather_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Dims dims, dims_of(ctx));
  const Shape& input = ctx.input(0).shape;
  const Shape& indices = ctx.input(1).shape;
  Shape shape;
  for (int d = 0; d < dims.axis; ++d) shape.push_back(input[d]);
  for (int d = dims.batch; d < indices.rank(); ++d) shape.push_back(indices[d]);
  for (int d = dims.axis + 1; d < input.rank(); ++d) shape.push_back(input[d]);
  return give_shape(ctx, std::move(shape));
}

Status gather_run(RunContext& ctx, Dims dims) {
  const Tensor& input = ctx.input(0);
  const Shape& shape = input.shape;
  const std::int64_t count = ctx.input(1).elements();
  const Indices indices(ctx.input(1));
  for (std::int64_t i = 0; i < count; ++i) {
    REEF_REQUIRE(indices[i] >= 0 && indices[i] < shape[dims.axis], "index {} is {}, outside of dimension {} of {}", i,
                 indices[i], dims.axis, shape.to_string());
  }
  if (ctx.output(0).elements() == 0) return ok_status();
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(input, "input"));
  const std::int64_t row_bytes = shape.product(dims.axis + 1, shape.rank()) * bytes;
  const std::int64_t outer = shape.product(dims.batch, dims.axis);
  const std::int64_t per_batch = ctx.input(1).shape.product(dims.batch, ctx.input(1).shape.rank());
  // Output rows in order: row = (b * outer + o) * per_batch + i.
  const std::int64_t rows = shape.product(0, dims.axis) * per_batch;
  const std::byte* from = input.data;
  std::byte* to = ctx.output(0).data;
  ctx.parallel_for(rows, std::max<std::int64_t>(64, 65536 / row_bytes), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t block = begin / per_batch, i = begin % per_batch;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t index = indices[block / outer * per_batch + i];
      std::memcpy(to + row * row_bytes, from + (block * shape[dims.axis] + index) * row_bytes,
                  static_cast<std::size_t>(row_bytes));
      if (++i == per_batch) {
        i = 0;
        ++block;
      }
    }
  });
  return ok_status();
}

Result<Kernel> gather_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(check_indices(ctx.input(1)));
  REEF_ASSIGN_OR_RETURN(const Dims dims, dims_of(ctx));
  return Kernel([dims](RunContext& run_ctx) { return gather_run(run_ctx, dims); });
}

}  // namespace

constinit const OpDef gather_op =
    define({.name = name_of(Op::GATHER),
            .summary = "Picks slices by index.",
            .inputs = {2, 2},
            .attributes = kGatherAttributes,
            .types = kWholeByteTypes,
            .traits = trait_set({Trait::kKeepsNonNegative}),
            .infer = gather_infer,
            .prepare = gather_prepare,
            .chip = {.instead = "Where the indices are constant, use STRIDED_SLICE and CONCATENATION, or a CONV_2D "
                                "with a 1x1 filter that selects channels.",
                     .rewrite = "gather"}});

}  // namespace reef::ops
