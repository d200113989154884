// SPDX-License-Identifier: Apache-2.0
// TransformTensorBilinear (MediaPipe, version 2): a small picture whose pixels are read at places of a large one that a
// matrix gives, between four pixels; places outside are 0. Corners of pixels are aligned, not their middles.
#include <cmath>

#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kTransformTensorBilinearAttributes[] = {{"output_height, output_width", "size of the result"}};
constexpr std::int32_t kMostPixels = 1 << 14;  // of a side

Status transform_tensor_bilinear_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "picture", 4, 4));
  REEF_ASSIGN_OR_RETURN(const FlexOptions options, FlexOptions::parse(ctx.op().custom_options));
  REEF_ASSIGN_OR_RETURN(const std::int32_t height, options.get_int("output_height"));
  REEF_ASSIGN_OR_RETURN(const std::int32_t width, options.get_int("output_width"));
  REEF_REQUIRE(height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels,
               "output_height {} and output_width {} must be from 1 to {}", height, width, kMostPixels);
  return give_shape(ctx, {1, height, width, ctx.input(0).shape[3]});
}

struct Picture {
  std::span<const float> values;
  std::int64_t height = 0, width = 0, channels = 0;

  float at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    if (y >= height || x >= width) return 0;
    return values[reef::at((y * width + x) * channels + c)];
  }

  // All channels at a place, to `out`.
  void read(float x, float y, float* out) const {
    const bool is_inside =
        x >= 0 && x <= static_cast<float>(width - 1) && y >= 0 && y <= static_cast<float>(height - 1);
    if (!is_inside) {
      std::fill(out, out + channels, 0.0f);
      return;
    }
    const float left = std::floor(x), top = std::floor(y), right = x - left, lower = y - top;
    const auto column = static_cast<std::int64_t>(left), row = static_cast<std::int64_t>(top);
    for (std::int64_t c = 0; c < channels; ++c) {
      const float above = (1 - right) * at(row, column, c) + right * at(row, column + 1, c);
      const float below = (1 - right) * at(row + 1, column, c) + right * at(row + 1, column + 1, c);
      out[c] = lower * below + (1 - lower) * above;
    }
  }
};

Result<Kernel> transform_tensor_bilinear_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "picture", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "matrix", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.op().version != 2) return unsupported("version {} of it; version 2 is known", ctx.op().version);
  REEF_REQUIRE(ctx.input(1).elements() == 16, "the matrix has {} elements, not 16", ctx.input(1).elements());
  REEF_REQUIRE(ctx.input(0).shape[0] == 1, "the batch is {}; 1 is known", ctx.input(0).shape[0]);
  return Kernel([](RunContext& run) {
    const auto& in = run.input(0).shape;
    const auto& out = run.output(0).shape;
    const Picture picture = {run.input(0).values<float>(), in[1], in[2], in[3]};
    const auto m = run.input(1).values<float>();
    // From corners to corners.
    const float shift_x = m[3] + m[0] * 0.5f + m[1] * 0.5f - 0.5f, shift_y = m[7] + m[4] * 0.5f + m[5] * 0.5f - 0.5f;
    float* place = run.output(0).mutable_values<float>().data();
    for (std::int32_t row = 0; row < out[1]; ++row) {
      for (std::int32_t column = 0; column < out[2]; ++column, place += picture.channels) {
        const auto x = static_cast<float>(column), y = static_cast<float>(row);
        picture.read(m[0] * x + m[1] * y + shift_x, m[4] * x + m[5] * y + shift_y, place);
      }
    }
    return ok_status();
  });
}

}  // namespace

constinit const OpDef transform_tensor_bilinear_op =
    define({.name = name_of(Op::TransformTensorBilinear),
            .summary = "A small picture out of a large one by a matrix, between pixels (MediaPipe).",
            .inputs = {2, 2},
            .attributes = kTransformTensorBilinearAttributes,
            .types = "float32",
            .is_custom = true,
            .infer = transform_tensor_bilinear_infer,
            .prepare = transform_tensor_bilinear_prepare,
            .chip = {.instead = "Places that are computed while the model runs; the CPU reads them."}});

}  // namespace reef::ops
