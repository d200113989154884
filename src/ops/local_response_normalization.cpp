// SPDX-License-Identifier: Apache-2.0
// LOCAL_RESPONSE_NORMALIZATION: x / (bias + alpha * sum of squares of channels near x's)^beta.
#include <algorithm>
#include <cstdint>

#include "kernels/activation/normalize.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kLocalResponseNormalizationAttributes[] = {
    {"radius", "channels on each side (one fewer above, as in TFLite)"},
    {"bias", "added to the sum"},
    {"alpha", "factor of the sum"},
    {"beta", "exponent"}};

Result<Kernel> local_response_normalization_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 4, 4));
  const ir::Attributes& attributes = ctx.attributes();
  // A radius beyond the number of channels means all of them.
  const std::int64_t radius = std::clamp<std::int64_t>(attributes.get_int("radius"), INT32_MIN, INT32_MAX);
  const kernels::LocalResponseParams params = {radius, attributes.get_float("bias"), attributes.get_float("alpha"),
                                               attributes.get_float("beta")};
  return Kernel([params](RunContext& run) {
    const Shape& shape = run.input(0).shape;
    const std::int64_t depth = shape[3];
    const float* in = run.input(0).values<float>().data();
    float* out = run.output(0).mutable_values<float>().data();
    const std::int64_t window = 1 + std::clamp<std::int64_t>(2 * params.radius, 0, depth);
    const std::int64_t grain = std::max<std::int64_t>(1, (1 << 13) / std::max<std::int64_t>(1, depth * window));
    run.parallel_for(shape.product(0, 3), grain, [&](std::int64_t begin, std::int64_t end) {
      kernels::local_response_normalize(in + begin * depth, end - begin, depth, params, out + begin * depth);
    });
    return ok_status();
  });
}

}  // namespace

constinit const OpDef local_response_normalization_op =
    define({.name = name_of(Op::LOCAL_RESPONSE_NORMALIZATION),
            .summary = "Divides by a power of the sum of squares of neighbouring channels.",
            .attributes = kLocalResponseNormalizationAttributes,
            .types = "float32",
            .infer = infer_same_shape,
            .prepare = local_response_normalization_prepare,
            .chip = {.instead = "Use batch normalization, which is folded into the convolution."}});

}  // namespace reef::ops
