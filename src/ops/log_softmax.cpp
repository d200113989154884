// SPDX-License-Identifier: Apache-2.0
// LOG_SOFTMAX: x minus the logarithm of the sum of exponentials, along the last dimension.
//
// 8-bit tensors in fixed point; the output's scale must be 1/16 and its zero point the largest number of the type.
#include <cstdint>

#include "kernels/activation/softmax.h"
#include "ops/op_def.h"
#include "ops/softmax_rows.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
Result<Kernel> log_softmax_8bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const std::int32_t zero_point = type_range(ctx.output(0).type).max;
  REEF_REQUIRE(q.output.scale == 16.0f / 256 && q.output.zero_point == zero_point,
               "the output has scale {} and zero point {}; LOG_SOFTMAX needs 1/16 and {}", q.output.scale,
               q.output.zero_point, zero_point);
  const auto scaling = kernels::log_softmax_scaling(q.input.scale);
  REEF_REQUIRE(scaling.has_value(), "the input's scale {} is too small", q.input.scale);
  return softmax_kernel<T, T>([scaling = *scaling](const T* in, kernels::Rows rows, T* out) {
    return kernels::log_softmax_8bit(in, rows, scaling, out);
  });
}

Result<Kernel> log_softmax_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_REQUIRE(ctx.input(0).shape.rank() >= 1, "the input is a scalar; LOG_SOFTMAX needs at least one dimension");
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return softmax_kernel<float, float>([](const float* in, kernels::Rows rows, float* out) {
        kernels::log_softmax(in, rows, out);
        return true;
      });
    case DataType::kInt8:
      return log_softmax_8bit<std::int8_t>(ctx);
    case DataType::kUInt8:
      return log_softmax_8bit<std::uint8_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef log_softmax_op =
    define({.name = name_of(Op::LOG_SOFTMAX),
            .summary = "Logarithm of SOFTMAX.",
            .types = "float32; int8; uint8",
            .infer = infer_same_shape,
            .prepare = log_softmax_prepare,
            .chip = {.instead = "Use SOFTMAX; the logarithm is taken on the CPU or by the loss."}});

}  // namespace reef::ops
