// SPDX-License-Identifier: Apache-2.0
#include "ops/pool.h"

#include <type_traits>

#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/window.h"

namespace reef::ops {
namespace {

Result<WindowAxis> vertical(const OpContext& ctx) {
  const ir::Attributes& a = ctx.attributes();
  return window_axis(ctx.input(0).shape[1], a.get_int("filter_height"), a.get_int("stride_h"), 1,
                     a.get_enum("padding", "SAME"));
}

Result<WindowAxis> horizontal(const OpContext& ctx) {
  const ir::Attributes& a = ctx.attributes();
  return window_axis(ctx.input(0).shape[2], a.get_int("filter_width"), a.get_int("stride_w"), 1,
                     a.get_enum("padding", "SAME"));
}

}  // namespace

Status infer_pool(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_ASSIGN_OR_RETURN(const WindowAxis rows, vertical(ctx));
  REEF_ASSIGN_OR_RETURN(const WindowAxis columns, horizontal(ctx));
  return give_shape(ctx, {input.shape[0], rows.output_size, columns.output_size, input.shape[3]});
}

Result<kernels::PoolGeometry> pool_geometry(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_ASSIGN_OR_RETURN(const WindowAxis rows, vertical(ctx));
  REEF_ASSIGN_OR_RETURN(const WindowAxis columns, horizontal(ctx));
  const ir::Attributes& a = ctx.attributes();
  kernels::PoolGeometry geometry;
  geometry.batches = input.shape[0];
  geometry.channels = input.shape[3];
  geometry.input_height = input.shape[1];
  geometry.input_width = input.shape[2];
  geometry.output_height = rows.output_size;
  geometry.output_width = columns.output_size;
  geometry.window_height = a.get_int("filter_height");
  geometry.window_width = a.get_int("filter_width");
  geometry.stride_height = a.get_int("stride_h");
  geometry.stride_width = a.get_int("stride_w");
  geometry.pad_top = rows.pad_before;
  geometry.pad_left = columns.pad_before;
  return geometry;
}

template <typename T>
Result<kernels::PoolLimits<T>> pool_limits(const OpContext& ctx) {
  if constexpr (std::is_same_v<T, float>) {
    REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(ctx.attributes()));
    return kernels::PoolLimits<T>{range.min, range.max};
  } else {
    REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
    // The range is cut to the type's, so nothing is lost here.
    return kernels::PoolLimits<T>{static_cast<T>(range.min), static_cast<T>(range.max)};
  }
}

template Result<kernels::PoolLimits<float>> pool_limits<float>(const OpContext&);
template Result<kernels::PoolLimits<std::int8_t>> pool_limits<std::int8_t>(const OpContext&);
template Result<kernels::PoolLimits<std::uint8_t>> pool_limits<std::uint8_t>(const OpContext&);
template Result<kernels::PoolLimits<std::int16_t>> pool_limits<std::int16_t>(const OpContext&);

}  // namespace reef::ops
