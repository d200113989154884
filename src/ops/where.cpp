// SPDX-License-Identifier: Apache-2.0
// WHERE: coordinates of the elements that are not zero, in order, one row of the output each.
//
// The output's shape depends on the input's values: [number of such elements, input rank].
#include <algorithm>
#include <vector>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

// Calls use(values) with the condition's elements as a span of their type; bools as bytes.
template <typename Use>
Status with_values(const Tensor& condition, const Use& use) {
  switch (condition.type) {
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUInt8:
      use(condition.values<std::uint8_t>());
      return ok_status();
    case DataType::kFloat32:
      use(condition.values<float>());
      return ok_status();
    case DataType::kInt32:
    case DataType::kUInt32:
      use(condition.values<std::uint32_t>());
      return ok_status();
    case DataType::kInt64:
      use(condition.values<std::uint64_t>());
      return ok_status();
    default:
      return unsupported("the condition ('{}') is {}; {} is needed", condition.name, ir::type_name(condition.type),
                         "bool, float32 or an integer of 8, 32 or 64 bits");
  }
}

Status where_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 1));
  const Tensor& condition = ctx.input(0);
  REEF_REQUIRE(condition.shape.rank() >= 1, "the condition ('{}') is a scalar; it needs a dimension", condition.name);
  REEF_RETURN_IF_ERROR(ctx.require_value(0));
  std::int64_t count = 0;
  REEF_RETURN_IF_ERROR(with_values(condition, [&](const auto& values) {
    count = std::count_if(values.begin(), values.end(), [](auto value) { return value != 0; });
  }));
  return give_shape(ctx, {static_cast<std::int32_t>(count), condition.shape.rank()});
}

Status where_run(RunContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int rank = shape.rank();
  std::int64_t* out = ctx.output(0).mutable_values<std::int64_t>().data();
  std::int64_t rows_left = ctx.output(0).shape[0];
  std::vector<std::int64_t> coordinates(static_cast<std::size_t>(rank), 0);
  return with_values(ctx.input(0), [&](const auto& values) {
    for (const auto value : values) {
      if (value != 0) {
        if (rows_left-- == 0) return;
        out = std::copy(coordinates.begin(), coordinates.end(), out);
      }
      for (int i = rank - 1; i >= 0; --i) {
        std::int64_t& coordinate = coordinates[at(i)];
        if (++coordinate < shape[i]) break;
        coordinate = 0;
      }
    }
  });
}

Result<Kernel> where_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 1));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "condition",
                                    {DataType::kBool, DataType::kFloat32, DataType::kInt8, DataType::kUInt8,
                                     DataType::kInt32, DataType::kUInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_rank(ctx.output(0), "output", 2, 2));
  return Kernel(where_run);
}

}  // namespace

constinit const OpDef where_op =
    define({.name = name_of(Op::WHERE),
            .summary = "Coordinates of the elements that are not zero.",
            .types = "bool; float32; int8; uint8; int32; uint32; int64",
            .infer = where_infer,
            .prepare = where_prepare,
            .chip = {.instead = "Do it on the CPU behind the model: the size of its result is not known before."}});

}  // namespace reef::ops
