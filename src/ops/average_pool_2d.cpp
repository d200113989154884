// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D: the mean of each window, channel by channel; padding is left out of sum and count.
//
// Integer averages round halves away from zero. Input and output must be quantized alike, which TFLite takes for
// granted and so do we.
#include "ops/checks.h"
#include "ops/pool.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16"};

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return make_pool_kernel<float>(ctx, kernels::average_pool<float>);
    case DataType::kInt8:
      return make_pool_kernel<std::int8_t>(ctx, kernels::average_pool<std::int8_t>);
    case DataType::kUInt8:
      return make_pool_kernel<std::uint8_t>(ctx, kernels::average_pool<std::uint8_t>);
    case DataType::kInt16:
      return make_pool_kernel<std::int16_t>(ctx, kernels::average_pool<std::int16_t>);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

extern const OpDef average_pool_2d_op;
constinit const OpDef average_pool_2d_op = define({.name = "AVERAGE_POOL_2D",
                                                   .summary = "Averages the pixels of a window, channel by channel.",
                                                   .attributes = kPoolAttributes,
                                                   .types = kTypes,
                                                   .infer = infer_pool,
                                                   .prepare = prepare});

}  // namespace reef::ops
