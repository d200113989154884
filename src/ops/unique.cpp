// SPDX-License-Identifier: Apache-2.0
// UNIQUE: the different values of a vector in order of first appearance, and for every element which of them it is.
//
// -0 equals 0; all NaN count as one value (TFLite's result is undefined then).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kUniqueAttributes[] = {{"idx_out_type", "INT32 or INT64; the index tensor's own type decides"}};

template <typename T>
bool less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(b) && !std::isnan(a);
  }
  return a < b;
}

// For every element the position of the first element equal to it.
template <typename T>
std::vector<std::int32_t> first_equal(std::span<const T> values) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) { return values[reef::at(i)]; };
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return less(at(a), at(b)) || (!less(at(b), at(a)) && a < b); });
  std::vector<std::int32_t> first(values.size());
  for (std::size_t i = 0, unique_run = 0; i < order.size(); ++i) {
    if (less(at(order[unique_run]), at(order[i]))) unique_run = i;
    first[reef::at(order[i])] = order[unique_run];
  }
  return first;
}

template <typename T>
std::int32_t count_unique(std::span<const T> values) {
  const std::vector<std::int32_t> first = first_equal(values);
  std::int32_t count = 0;
  for (std::size_t i = 0; i < first.size(); ++i) count += first[i] == static_cast<std::int32_t>(i) ? 1 : 0;
  return count;
}

Status unique_infer(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 1, 1));
  ctx.set_output_shape(1, input.shape);
  REEF_RETURN_IF_ERROR(ctx.require_value(0));
  std::int32_t count = 0;
  switch (input.type) {
    case DataType::kFloat32:
      count = count_unique(input.values<float>());
      break;
    case DataType::kInt8:
      count = count_unique(input.values<std::int8_t>());
      break;
    case DataType::kUInt8:
      count = count_unique(input.values<std::uint8_t>());
      break;
    case DataType::kInt16:
      count = count_unique(input.values<std::int16_t>());
      break;
    case DataType::kInt32:
      count = count_unique(input.values<std::int32_t>());
      break;
    case DataType::kInt64:
      count = count_unique(input.values<std::int64_t>());
      break;
    default:
      return unsupported_types(ctx);
  }
  return give_shape(ctx, {count});
}

template <typename T, typename Index>
Status unique_run(RunContext& ctx) {
  const std::span<const T> input = ctx.input(0).values<T>();
  const std::span<T> unique = ctx.output(0).mutable_values<T>();
  const std::span<Index> indices = ctx.output(1).mutable_values<Index>();
  const std::vector<std::int32_t> first = first_equal(input);
  std::size_t count = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto leader = static_cast<std::size_t>(first[i]);
    if (leader != i) {
      indices[i] = indices[leader];
      continue;
    }
    REEF_REQUIRE(count < unique.size(), "the values changed since shapes were computed");
    unique[count] = input[i];
    indices[i] = static_cast<Index>(count++);
  }
  return ok_status();
}

template <typename T>
Kernel unique_choose(DataType index_type) {
  return index_type == DataType::kInt32 ? Kernel(unique_run<T, std::int32_t>) : Kernel(unique_run<T, std::int64_t>);
}

Result<Kernel> unique_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(1), "indices", {DataType::kInt32, DataType::kInt64}));
  const DataType index_type = ctx.output(1).type;
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> { return unique_choose<T>(index_type); });
}

}  // namespace

constinit const OpDef unique_op = define({.name = name_of(Op::UNIQUE),
                                          .summary = "Finds the different values of a vector.",
                                          .outputs = {2, 2},
                                          .attributes = kUniqueAttributes,
                                          .types = "float32; int8; uint8; int16; int32; int64",
                                          .infer = unique_infer,
                                          .prepare = unique_prepare,
                                          .chip = {.instead = "Do it on the CPU behind the model."}});

}  // namespace reef::ops
