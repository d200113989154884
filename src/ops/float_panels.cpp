// SPDX-License-Identifier: Apache-2.0
#include "ops/float_panels.h"

#include "ops/conv_family.h"
#include "ops/panel_blocks.h"

namespace reef::ops {
namespace {

constexpr std::int64_t kFloatPanelsPixelStep = 24;  // pixels that a kernel handles together
constexpr double kFewestProducts = 250'000;         // some 5 microseconds

bool leaves_image(const kernels::ConvAxis& axis) {
  return axis.pad_before > 0 ||
         (axis.output - 1) * axis.stride - axis.pad_before + (axis.window - 1) * axis.dilation >= axis.input;
}

}  // namespace

FloatConvWeights pack_float_weights(const float* rows, const kernels::ConvShape& s) {
  FloatConvWeights result{kernels::FloatPanels(s.groups, s.group_outputs(), s.depth()), {}};
  for (std::int64_t o = 0; o < s.output_channels; ++o) {
    result.panels.set_column(o / s.group_outputs(), o % s.group_outputs(), rows + o * s.depth(), 1);
  }
  if (result.panels.finite || !(leaves_image(s.x) || leaves_image(s.y))) return result;
  result.columns = kernels::PackedColumns(s.groups, s.group_outputs(), s.depth());
  for (std::int64_t o = 0; o < s.output_channels; ++o) {
    for (std::int64_t k = 0; k < s.depth(); ++k) {
      result.columns.at(o / s.group_outputs(), o % s.group_outputs(), k) = rows[o * s.depth() + k];
    }
  }
  return result;
}

void run_float_convolution(const RunContext& ctx, const kernels::ConvShape& s, const float* input,
                           const FloatConvWeights& weights, const kernels::FloatOutput& finish, float* output) {
  if (s.output_pixels() == 0 || s.output_channels == 0) return;
  if (!weights.is_fast()) {
    const bool blocks_align = s.groups == 1 || s.group_outputs() % kernels::kColumnBlock == 0;
    const std::int64_t channel_step = blocks_align ? kernels::kColumnBlock : s.group_outputs();
    return for_each_output_block(ctx, s, s.output_rows(), static_cast<double>(s.depth()), channel_step,
                                 [&](const kernels::OutputBlock& part) {
                                   kernels::convolve_float(s, input, weights.columns, finish, part, output);
                                 });
  }
  const kernels::FloatPanels& panels = weights.panels;
  const PanelBlocks blocks = panel_blocks(ctx, s, panels.panels(), kFewestProducts, kFloatPanelsPixelStep);
  for_each_panel_block(ctx, s, panels.panels(), blocks,
                       [&](std::int64_t group, std::int64_t pixel_begin, std::int64_t pixel_end,
                           std::int64_t panel_begin, std::int64_t panel_end) {
                         kernels::convolve_panels(s, input, panels, group, finish, pixel_begin, pixel_end, panel_begin,
                                                  panel_end, output);
                       });
}

Result<Kernel> float_panels_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ConvOperands& at) {
  REEF_RETURN_IF_ERROR(optional_bias(ctx, at.bias, {DataType::kFloat32}, s.output_channels).status());
  REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(ctx.attributes()));
  const FromTensor<FloatConvWeights> packed(ctx.input(at.weights), [s](const Tensor& weights) {
    return pack_float_weights(weights.values<float>().data(), s);
  });
  return Kernel([=](RunContext& run_ctx) {
    run_float_convolution(run_ctx, s, run_ctx.input(at.input).values<float>().data(),
                          *packed.get(run_ctx.input(at.weights)), float_output(run_ctx, at.bias, range),
                          run_ctx.output(0).mutable_values<float>().data());
    return ok_status();
  });
}

kernels::ConvShape product_shape(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  kernels::ConvShape s;
  s.batches = 1;
  s.input_channels = depth;
  s.output_channels = columns;
  s.y = {1, 1, 1, 1, 1, 0};
  s.x = {rows, rows, 1, 1, 1, 0};
  return s;
}

}  // namespace reef::ops
