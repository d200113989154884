// SPDX-License-Identifier: Apache-2.0
// ONE_HOT: a new dimension of `depth` positions, on_value at the position an index names, off_value elsewhere.
//
// Indices outside of [0, depth) give no on_value. int64 indices are cut to 32 bits first, as in TFLite.
#include <algorithm>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kOneHotAttributes[] = {{"axis", "where the new dimension goes; -1: last"}};

Result<int> new_axis(const OpContext& ctx) {
  const int rank = ctx.input(0).shape.rank();
  const std::int64_t axis = ctx.attributes().get_int("axis");
  REEF_REQUIRE(axis >= -1 && axis <= rank, "axis is {}; it must be between -1 and {}", axis, rank);
  return axis == -1 ? rank : static_cast<int>(axis);
}

Status one_hot_infer(InferContext& ctx) {
  const Shape& indices = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "depth", {DataType::kInt32}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> depth, ctx.ints(1));
  REEF_REQUIRE(depth.size() == 1 && depth[0] >= 0, "depth ('{}') must be one number that is not negative",
               ctx.input(1).name);
  REEF_ASSIGN_OR_RETURN(const int axis, new_axis(ctx));
  Shape output;
  for (int i = 0; i <= indices.rank(); ++i) {
    if (i == axis) output.push_back(static_cast<std::int32_t>(depth[0]));
    if (i < indices.rank()) output.push_back(indices[i]);
  }
  REEF_RETURN_IF_ERROR(check_shape(output));
  return give_shape(ctx, std::move(output));
}

// Output viewed as [prefix, depth, suffix]: all off, then one on per index.
template <typename T, typename Index>
Status one_hot_run(RunContext& ctx, int axis) {
  const Shape& shape = ctx.output(0).shape;
  const std::int64_t depth = shape[axis], suffix = shape.product(axis + 1, shape.rank());
  const std::int64_t prefix = shape.product(0, axis);
  if (shape.elements() == 0) return ok_status();
  const Index* indices = ctx.input(0).values<Index>().data();
  const T on = ctx.input(2).values<T>()[0];
  const T off = ctx.input(3).values<T>()[0];
  T* output = ctx.output(0).mutable_values<T>().data();
  const std::int64_t slice = depth * suffix;
  ctx.parallel_for(prefix, std::max<std::int64_t>(1, (1 << 15) / slice), [&](std::int64_t begin, std::int64_t end) {
    std::fill_n(output + begin * slice, (end - begin) * slice, off);
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t k = 0; k < suffix; ++k) {
        const std::int64_t index = static_cast<std::int32_t>(indices[i * suffix + k]);
        if (index >= 0 && index < depth) output[i * slice + index * suffix + k] = on;
      }
    }
  });
  return ok_status();
}

template <typename T>
Kernel one_hot_choose(DataType index_type, int axis) {
  if (index_type == DataType::kInt64)
    return [axis](RunContext& ctx) { return one_hot_run<T, std::int64_t>(ctx, axis); };
  return [axis](RunContext& ctx) { return one_hot_run<T, std::int32_t>(ctx, axis); };
}

Result<Kernel> one_hot_prepare(PrepareContext& ctx) {
  const DataType index_type = ctx.input(0).type;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "indices", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(2), ctx.input(3)));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(2), ctx.output(0)));
  REEF_REQUIRE(ctx.input(2).elements() == 1 && ctx.input(3).elements() == 1,
               "on_value and off_value must have one element each");
  REEF_ASSIGN_OR_RETURN(const int axis, new_axis(ctx));
  switch (ctx.input(2).type) {
    case DataType::kFloat32:
      return one_hot_choose<float>(index_type, axis);
    case DataType::kInt32:
      return one_hot_choose<std::int32_t>(index_type, axis);
    case DataType::kInt64:
      return one_hot_choose<std::int64_t>(index_type, axis);
    case DataType::kInt8:
      return one_hot_choose<std::int8_t>(index_type, axis);
    case DataType::kUInt8:
    case DataType::kBool:
      return one_hot_choose<std::uint8_t>(index_type, axis);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef one_hot_op = define({.name = name_of(Op::ONE_HOT),
                                           .summary = "Turns indices into vectors that are on at one position.",
                                           .inputs = {4, 4},
                                           .attributes = kOneHotAttributes,
                                           .types = "float32; int8; uint8; int32; int64; bool; indices: int32, int64",
                                           .infer = one_hot_infer,
                                           .prepare = one_hot_prepare,
                                           .chip = {.instead = "Make one-hot vectors on the CPU before the model."}});

}  // namespace reef::ops
