// SPDX-License-Identifier: Apache-2.0
// TOPK_V2: the k largest elements of every row (the last dimension) in falling order, and where they were.
//
// The earlier of equal elements comes first. NaN counts as smaller than everything; TFLite's order is not defined then.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status topk_v2_infer(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_REQUIRE(input.shape.rank() >= 1, "input ('{}') is a scalar; rows are needed", input.name);
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "k", {DataType::kInt32, DataType::kInt16}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> k, ctx.ints(1));
  REEF_REQUIRE(k.size() == 1, "k ('{}') has {} elements; one is needed", ctx.input(1).name, k.size());
  REEF_REQUIRE(k[0] <= input.shape.last(), "k is {}, but rows of {} have only {} elements", k[0],
               input.shape.to_string(), input.shape.last());
  Shape output = input.shape;
  output[output.rank() - 1] = static_cast<std::int32_t>(std::max<std::int64_t>(k[0], 0));
  ctx.set_output_shape(1, output);
  return give_shape(ctx, std::move(output));
}

template <typename T>
bool larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(b)) return !std::isnan(a);
  }
  return a > b;
}

// A strict order of positions in a row: best first.
template <typename T>
struct Before {
  const T* row;
  bool operator()(std::int64_t a, std::int64_t b) const {
    if (larger(row[a], row[b])) return true;
    return !larger(row[b], row[a]) && a < b;
  }
};

// Keeps the best k positions in `indices` as a heap whose front is the worst of them. k >= 1.
template <typename T, typename Index>
void top_of_row(const T* row, std::int64_t size, std::int64_t k, T* values, Index* indices) {
  const Before<T> before{row};
  for (std::int64_t i = 0; i < k; ++i) indices[i] = static_cast<Index>(i);
  std::make_heap(indices, indices + k, before);
  for (std::int64_t i = k; i < size; ++i) {
    if (!before(i, indices[0])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = static_cast<Index>(i);
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (std::int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

template <typename T, typename Index>
Status topk_v2_run(RunContext& ctx) {
  const std::int64_t size = ctx.input(0).shape.last();
  const std::int64_t k = ctx.output(0).shape.last();
  if (ctx.output(0).elements() == 0) return ok_status();
  const T* input = ctx.input(0).values<T>().data();
  T* values = ctx.output(0).mutable_values<T>().data();
  Index* indices = ctx.output(1).mutable_values<Index>().data();
  const std::int64_t rows = ctx.output(0).elements() / k;
  ctx.parallel_for(rows, std::max<std::int64_t>(1, (1 << 13) / size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      top_of_row(input + row * size, size, k, values + row * k, indices + row * k);
    }
  });
  return ok_status();
}

template <typename T>
Kernel topk_v2_choose(DataType index_type) {
  return index_type == DataType::kInt16 ? Kernel(topk_v2_run<T, std::int16_t>) : Kernel(topk_v2_run<T, std::int32_t>);
}

Result<Kernel> topk_v2_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(1), "indices", {DataType::kInt32, DataType::kInt16}));
  const DataType index_type = ctx.output(1).type;
  REEF_REQUIRE(index_type == DataType::kInt32 || ctx.input(0).shape.last() <= 32768,
               "rows of {} elements cannot be indexed with int16", ctx.input(0).shape.last());
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> { return topk_v2_choose<T>(index_type); });
}

}  // namespace

constinit const OpDef topk_v2_op =
    define({.name = name_of(Op::TOPK_V2),
            .summary = "Finds the k largest elements of every row.",
            .inputs = {2, 2},
            .outputs = {2, 2},
            .types = "float32; int8; uint8; int16; int32; int64 (indices int32, or int16 for short rows)",
            .traits = trait_set({Trait::kTakesLargest}),
            .infer = topk_v2_infer,
            .prepare = topk_v2_prepare,
            .chip = {.instead = "End the model with the scores and sort on the CPU."}});

}  // namespace reef::ops
