// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION: rows (along the last dimension) divided by their Euclidean length.
//
// 8-bit tensors in fixed point; the output's scale must be 1/128 and its zero point stand for 0. A fused activation is
// refused, as in TFLite.
#include <algorithm>
#include <cstdint>

#include "kernels/activation/normalize.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kL2NormalizationAttributes[] = {{"fused_activation_function", "must be NONE"}};

// Runs body(in, rows, depth, out) on parts of the rows.
template <typename T, typename Body>
Kernel row_kernel(Body body) {
  return [body](RunContext& ctx) {
    const Shape& shape = ctx.input(0).shape;
    const std::int64_t depth = shape.last();
    const T* in = ctx.input(0).values<T>().data();
    T* out = ctx.output(0).mutable_values<T>().data();
    const std::int64_t grain = std::max<std::int64_t>(1, kUnaryGrain / std::max<std::int64_t>(1, depth));
    ctx.parallel_for(shape.product(0, shape.rank() - 1), grain, [&](std::int64_t begin, std::int64_t end) {
      body(in + begin * depth, end - begin, depth, out + begin * depth);
    });
    return ok_status();
  };
}

template <typename T>
Result<Kernel> normalize_8bit(const OpContext& ctx, std::int32_t output_zero_point) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  REEF_REQUIRE(q.output.scale == 1.0f / 128 && q.output.zero_point == output_zero_point,
               "the output has scale {} and zero point {}; L2_NORMALIZATION needs 1/128 and {}", q.output.scale,
               q.output.zero_point, output_zero_point);
  return row_kernel<T>([zero_point = q.input.zero_point](const T* in, std::int64_t rows, std::int64_t depth, T* out) {
    kernels::l2_normalize(in, rows, depth, zero_point, out);
  });
}

Result<Kernel> l2_normalization_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_REQUIRE(ctx.input(0).shape.rank() >= 1, "the input is a scalar; at least one dimension is needed");
  const std::string_view activation = ctx.attributes().get_enum("fused_activation_function", "NONE");
  if (activation != "NONE") return unsupported("L2_NORMALIZATION cannot be fused with {}", activation);
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return row_kernel<float>([](const float* in, std::int64_t rows, std::int64_t depth, float* out) {
        kernels::l2_normalize(in, rows, depth, out);
      });
    case DataType::kInt8:
      return normalize_8bit<std::int8_t>(ctx, 0);
    case DataType::kUInt8:
      return normalize_8bit<std::uint8_t>(ctx, 128);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef l2_normalization_op = define({.name = name_of(Op::L2_NORMALIZATION),
                                                    .summary = "Rows divided by their Euclidean length.",
                                                    .attributes = kL2NormalizationAttributes,
                                                    .types = "float32; int8; uint8",
                                                    .traits = trait_set({Trait::kPerImage, Trait::kKeepsNonNegative}),
                                                    .infer = infer_same_shape,
                                                    .prepare = l2_normalization_prepare,
                                                    .chip = {.first_runtime = 10}});

}  // namespace reef::ops
