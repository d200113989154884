// SPDX-License-Identifier: Apache-2.0
// Shared by AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: attributes, shapes, limits of the fused activation.
#pragma once

#include "kernels/pool/pool.h"
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {

inline constexpr AttributeDoc kPoolAttributes[] = {
    {"padding", "SAME (half of the padding in front, the odd one behind) or VALID (none); padding counts for nothing"},
    {"stride_w", "pixels from one window to the next, at least 1"},
    {"stride_h", "rows from one window to the next, at least 1"},
    {"filter_width", "width of the window, at least 1"},
    {"filter_height", "height of the window, at least 1"},
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"}};

inline constexpr std::string_view kPoolTypes = "float32; int8; uint8; int16";

Status infer_pool(InferContext& ctx);

// Geometry of a pool whose shapes are known, checked.
Result<kernels::PoolGeometry> pool_geometry(const OpContext& ctx);

// Limits of the fused activation in the output's type.
template <typename T>
Result<kernels::PoolLimits<T>> pool_limits(const OpContext& ctx);

// The kernel that runs `pool`, a function of kernels/pool for elements of type T.
template <typename T, typename Pool>
Result<Kernel> make_pool_kernel(const OpContext& ctx, Pool pool) {
  REEF_ASSIGN_OR_RETURN(const kernels::PoolGeometry geometry, pool_geometry(ctx));
  REEF_ASSIGN_OR_RETURN(const kernels::PoolLimits<T> limits, pool_limits<T>(ctx));
  return Kernel([=](RunContext& run) {
    const T* input = run.input(0).values<T>().data();
    T* output = run.output(0).mutable_values<T>().data();
    run.parallel_for(kernels::pool_units(geometry), kernels::pool_grain(geometry),
                     [&](std::int64_t begin, std::int64_t end) { pool(geometry, input, limits, output, begin, end); });
    return ok_status();
  });
}

// The same for any of kPoolTypes; pool.template operator()<T>(...) calls the function for elements of type T.
template <typename Pool>
Result<Kernel> prepare_pool(const OpContext& ctx, Pool pool) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> {
        return make_pool_kernel<T>(ctx,
                                   [pool](const auto&... arguments) { pool.template operator()<T>(arguments...); });
      });
}

}  // namespace reef::ops
