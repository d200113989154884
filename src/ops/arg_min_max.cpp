// SPDX-License-Identifier: Apache-2.0
#include "ops/arg_min_max.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "kernels/reduce/extreme_byte.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr std::int64_t kBlock = 256;  // neighbours along the inner dimensions that are searched together

// The input as [outer, along, inner], where `along` is the axis that is searched.
struct Extent {
  std::int64_t outer = 1, along = 1, inner = 1;
};

Result<Extent> extent(const Shape& shape, std::int64_t axis_value) {
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(axis_value, shape.rank()));
  REEF_REQUIRE(shape[axis] > 0, "axis {} of {} is empty; there is nothing to choose from", axis, shape.to_string());
  return Extent{shape.product(0, axis), shape[axis], shape.product(axis + 1, shape.rank())};
}

// kNanLoses: a NaN gives way to any number; else one that comes first is kept.
template <typename T, bool kWantMax, bool kNanLoses>
bool better(T candidate, T best) {
  if constexpr (kNanLoses) {
    if (std::isnan(best)) return !std::isnan(candidate);
  }
  return kWantMax ? candidate > best : candidate < best;
}

// One block of `count` neighbours, all positions along the axis. The first of equal elements wins.
template <typename T, typename Index, bool kWantMax, bool kNanLoses>
void search(const T* input, std::int64_t along, std::int64_t stride, std::int64_t count, Index* output) {
  std::array<T, kBlock> best;
  std::copy_n(input, count, best.begin());
  std::fill_n(output, count, Index{0});
  for (std::int64_t i = 1; i < along; ++i) {
    const T* candidates = input + i * stride;
    for (std::int64_t j = 0; j < count; ++j) {
      if (better<T, kWantMax, kNanLoses>(candidates[j], best[reef::at(j)])) {
        best[reef::at(j)] = candidates[j];
        output[j] = static_cast<Index>(i);
      }
    }
  }
}

// The same for one neighbour, which is the usual case: the axis is the last dimension.
template <typename T, typename Index, bool kWantMax, bool kNanLoses>
void search_row(const T* input, std::int64_t along, Index* output) {
  T best = input[0];
  std::int64_t at = 0;
  for (std::int64_t i = 1; i < along; ++i) {
    const T candidate = input[i];
    const bool wins = better<T, kWantMax, kNanLoses>(candidate, best);
    best = wins ? candidate : best;
    at = wins ? i : at;
  }
  *output = static_cast<Index>(at);
}

template <typename T, typename Index, bool kWantMax, bool kNanLoses>
Status arg_min_max_run(RunContext& ctx) {
  const Tensor& axis = ctx.input(1);
  const std::int64_t axis_value =
      axis.type == DataType::kInt64 ? axis.values<std::int64_t>()[0] : axis.values<std::int32_t>()[0];
  REEF_ASSIGN_OR_RETURN(const Extent e, extent(ctx.input(0).shape, axis_value));
  REEF_REQUIRE(e.outer * e.inner == ctx.output(0).elements(), "the axis changed since shapes were computed");
  const T* input = ctx.input(0).values<T>().data();
  Index* output = ctx.output(0).mutable_values<Index>().data();
  const std::int64_t blocks = (e.inner + kBlock - 1) / kBlock;
  const std::int64_t per_unit = std::max<std::int64_t>(e.along * std::min(e.inner, kBlock), 1);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 15) / per_unit);
  ctx.parallel_for(e.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (sizeof(T) == 1) {
      if (e.inner == 1) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(input + begin * e.along);
        return kernels::first_extreme_bytes(bytes, end - begin, e.along, std::is_signed_v<T>, kWantMax, output + begin);
      }
    }
    for (std::int64_t row = begin; e.inner == 1 && row < end; ++row) {
      search_row<T, Index, kWantMax, kNanLoses>(input + row * e.along, e.along, output + row);
    }
    if (e.inner == 1) return;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t outer = unit / blocks;
      const std::int64_t first = unit % blocks * kBlock;
      search<T, Index, kWantMax, kNanLoses>(input + outer * e.along * e.inner + first, e.along, e.inner,
                                            std::min(kBlock, e.inner - first), output + outer * e.inner + first);
    }
  });
  return ok_status();
}

template <typename T, bool kNanLoses = false>
Kernel arg_min_max_choose(DataType index_type, bool want_max) {
  if (index_type == DataType::kInt32) {
    return want_max ? Kernel(arg_min_max_run<T, std::int32_t, true, kNanLoses>)
                    : Kernel(arg_min_max_run<T, std::int32_t, false, kNanLoses>);
  }
  return want_max ? Kernel(arg_min_max_run<T, std::int64_t, true, kNanLoses>)
                  : Kernel(arg_min_max_run<T, std::int64_t, false, kNanLoses>);
}

}  // namespace

Status infer_arg_min_max(InferContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "axis", {DataType::kInt32, DataType::kInt64}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> axes, ctx.ints(1));
  REEF_REQUIRE(axes.size() == 1, "axis ('{}') has {} elements; one is needed", ctx.input(1).name, axes.size());
  REEF_ASSIGN_OR_RETURN(const int axis, normalize_axis(axes[0], input.rank()));
  Shape output;
  for (int i = 0; i < input.rank(); ++i) {
    if (i != axis) output.push_back(input[i]);
  }
  return give_shape(ctx, std::move(output));
}

Result<Kernel> prepare_arg_min_max(PrepareContext& ctx, bool want_max) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "axis", {DataType::kInt32, DataType::kInt64}));
  REEF_REQUIRE(ctx.input(1).elements() == 1, "axis ('{}') must have one element", ctx.input(1).name);
  const DataType index_type = ctx.output(0).type;
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt32, DataType::kInt64}));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return ctx.environment()->tflite_release() == TfliteRelease::k2_9
                 ? arg_min_max_choose<float>(index_type, want_max)
                 : arg_min_max_choose<float, true>(index_type, want_max);
    case DataType::kInt8:
      return arg_min_max_choose<std::int8_t>(index_type, want_max);
    case DataType::kUInt8:
    case DataType::kBool:
      return arg_min_max_choose<std::uint8_t>(index_type, want_max);
    case DataType::kInt32:
      return arg_min_max_choose<std::int32_t>(index_type, want_max);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace reef::ops
