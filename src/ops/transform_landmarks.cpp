// SPDX-License-Identifier: Apache-2.0
// TransformLandmarks (MediaPipe, version 2): x and y of landmarks by the first two rows of a matrix; a third coordinate
// stays.
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Result<Kernel> transform_landmarks_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "landmarks", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "matrix", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "landmarks", 3, 3));
  if (ctx.op().version != 2) return unsupported("version {} of it; version 2 is known", ctx.op().version);
  const std::int32_t coordinates = ctx.input(0).shape[2];
  REEF_REQUIRE(coordinates == 2 || coordinates == 3, "landmarks have {} coordinates each; 2 or 3 are known",
               coordinates);
  REEF_REQUIRE(ctx.input(1).elements() == 16, "the matrix has {} elements, not 16", ctx.input(1).elements());
  return Kernel([step = static_cast<std::size_t>(coordinates)](RunContext& run) {
    const auto in = run.input(0).values<float>(), m = run.input(1).values<float>();
    const auto out = run.output(0).mutable_values<float>();
    for (std::size_t i = 0; i + step <= in.size(); i += step) {
      const float x = in[i], y = in[i + 1];
      out[i] = m[0] * x + m[1] * y + m[3];
      out[i + 1] = m[4] * x + m[5] * y + m[7];
      if (step == 3) out[i + 2] = in[i + 2];
    }
    return ok_status();
  });
}

}  // namespace

constinit const OpDef transform_landmarks_op =
    define({.name = name_of(Op::TransformLandmarks),
            .summary = "Moves landmarks by a matrix (MediaPipe).",
            .inputs = {2, 2},
            .types = "float32",
            .is_custom = true,
            .infer = infer_same_shape,
            .prepare = transform_landmarks_prepare,
            .chip = {.instead = "It takes a few hundred operations; the CPU does it."}});

}  // namespace reef::ops
