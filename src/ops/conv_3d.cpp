// SPDX-License-Identifier: Apache-2.0
// CONV_3D: convolution over depth, height and width of a video or volume.
//
// Weights are [depth, height, width, input channels, output channels], so all sums of an output pixel are kept beside
// each other and every input value is multiplied by a row of weights. The order of additions within each sum is that of
// TFLite's reference kernel. There is no packing and no blocking: models with this op are rare.
#include <algorithm>
#include <array>

#include "ops/checks.h"
#include "ops/conv_family.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kConv3dAttributes[] = {
    {"padding", "SAME or VALID"},
    {"stride_d", "step of the window along the depth"},
    {"stride_h", "step of the window downwards"},
    {"stride_w", "step of the window to the right"},
    {"dilation_d_factor", "distance of the window's elements along the depth"},
    {"dilation_h_factor", "distance of the window's elements downwards"},
    {"dilation_w_factor", "distance of the window's elements to the right"},
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"}};
constexpr int kBias = 2;

struct VolumeShape {
  std::array<kernels::ConvAxis, 3> axes;  // depth, height, width
  std::int64_t batches = 0, input_channels = 0, output_channels = 0;

  std::int64_t output_pixels() const { return axes[0].output * axes[1].output * axes[2].output; }
  std::int64_t input_pixels() const { return axes[0].input * axes[1].input * axes[2].input; }
};

Result<VolumeShape> conv_3d_shape_of(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 5, 5));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(1), "weights", 5, 5));
  const Shape &input = ctx.input(0).shape, &weights = ctx.input(1).shape;
  REEF_REQUIRE(weights[3] == input[4], "weights ('{}') have {} input channels, the input {}", ctx.input(1).name,
               weights[3], input[4]);
  constexpr std::array<std::string_view, 3> kStrides = {"stride_d", "stride_h", "stride_w"};
  constexpr std::array<std::string_view, 3> kDilations = {"dilation_d_factor", "dilation_h_factor",
                                                          "dilation_w_factor"};
  VolumeShape s;
  s.batches = input[0];
  s.input_channels = input[4];
  s.output_channels = weights[4];
  const ir::Attributes& attributes = ctx.attributes();
  for (int i = 0; i < 3; ++i) {
    const auto at = static_cast<std::size_t>(i);
    REEF_ASSIGN_OR_RETURN(s.axes[at],
                          conv_axis(input[i + 1], weights[i], attributes.get_int(kStrides[at]),
                                    attributes.get_int(kDilations[at], 1), attributes.get_enum("padding", "SAME")));
  }
  return s;
}

Status conv_3d_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const VolumeShape s, conv_3d_shape_of(ctx));
  const auto size = [&](std::size_t i) { return static_cast<std::int32_t>(s.axes[i].output); };
  return give_shape(ctx, {ctx.input(0).shape[0], size(0), size(1), size(2), ctx.input(1).shape[4]});
}

// Adds the products of the output pixel at (z, y, x) to `sums`, one for each output channel.
void add_products(const VolumeShape& s, const float* input, const float* weights,
                  const std::array<std::int64_t, 3>& pixel, float* sums) {
  const auto& [depth, height, width] = s.axes;
  const auto [z_begin, z_end] = depth.inside(pixel[0]);
  const auto [y_begin, y_end] = height.inside(pixel[1]);
  const auto [x_begin, x_end] = width.inside(pixel[2]);
  for (std::int64_t z = z_begin; z < z_end; ++z) {
    const std::int64_t plane = (depth.origin(pixel[0]) + z * depth.dilation) * height.input;
    for (std::int64_t y = y_begin; y < y_end; ++y) {
      const std::int64_t line = (plane + height.origin(pixel[1]) + y * height.dilation) * width.input;
      for (std::int64_t x = x_begin; x < x_end; ++x) {
        const float* const values = input + (line + width.origin(pixel[2]) + x * width.dilation) * s.input_channels;
        const std::int64_t tap = (z * height.window + y) * width.window + x;
        const float* row = weights + tap * s.input_channels * s.output_channels;
        for (std::int64_t channel = 0; channel < s.input_channels; ++channel, row += s.output_channels) {
          for (std::int64_t o = 0; o < s.output_channels; ++o) sums[o] += values[channel] * row[o];
        }
      }
    }
  }
}

Result<Kernel> conv_3d_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "weights", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const VolumeShape s, conv_3d_shape_of(ctx));
  REEF_RETURN_IF_ERROR(optional_bias(ctx, kBias, {DataType::kFloat32}, s.output_channels).status());
  REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(ctx.attributes()));
  return Kernel([s, range](RunContext& run) {
    const float* const input = run.input(0).values<float>().data();
    const float* const weights = run.input(1).values<float>().data();
    const float* const bias = float_bias(run, kBias);
    float* const output = run.output(0).mutable_values<float>().data();
    run.parallel_for(s.batches * s.output_pixels(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t pixel = begin; pixel < end; ++pixel) {
        const std::int64_t batch = pixel / s.output_pixels(), line = pixel / s.axes[2].output;
        const std::int64_t plane = line / s.axes[1].output;
        float* const sums = output + pixel * s.output_channels;
        std::fill_n(sums, s.output_channels, 0.0f);
        add_products(s, input + batch * s.input_pixels() * s.input_channels, weights,
                     {plane % s.axes[0].output, line % s.axes[1].output, pixel % s.axes[2].output}, sums);
        for (std::int64_t o = 0; o < s.output_channels; ++o) {
          sums[o] = std::clamp(sums[o] + (bias == nullptr ? 0.0f : bias[o]), range.min, range.max);
        }
      }
    });
    return ok_status();
  });
}

}  // namespace

constinit const OpDef conv_3d_op =
    define({.name = name_of(Op::CONV_3D),
            .summary = "Convolves a video or volume with a window of three dimensions.",
            .inputs = {2, 3},
            .attributes = kConv3dAttributes,
            .types = "float32",
            .infer = conv_3d_infer,
            .prepare = conv_3d_prepare,
            .chip = {.instead = "Export the network with ONNX: Reef turns three-dimensional convolutions into "
                                "CONV_2D, which the Edge TPU runs."}});

}  // namespace reef::ops
