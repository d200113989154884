// SPDX-License-Identifier: Apache-2.0
// CONV_2D: 2-D convolution, dense or in groups.
//
// output[b, y, x, o] = act(bias[o] + sum over ky, kx, c of
//                          input[b, y * stride_h - pad + ky * dilation_h, ..., c] * weights[o, ky, kx, c])
// Positions outside the image are left out. Weights of fewer channels than the input mean groups: output channels are
// split evenly among consecutive slices of the input's channels.
//
// Float sums add in the reference's order (ky, kx, c). Integer sums are exact; how they are scaled depends on the
// types:
//   uint8           per tensor, weights with a zero point; scale product rounded to float (older TFLite convention)
//   int8, int4      32-bit sums and multipliers
//   int16, bias 64  48-bit sums, 16-bit multipliers;   int16, bias 32  as int8, with sums that wrap at 32 bits
//   float x integer ("hybrid"): activations are quantized per image while running. One scale for all weights:
//                   symmetrically; scales per channel: asymmetrically (2.9: with the scale in double).
#include <fmt/format.h>

#include "ops/chip_rules.h"
#include "ops/conv_family.h"
#include "ops/float_panels.h"
#include "ops/hybrid_panels.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::ConvShape;
using kernels::PackedRows;

constexpr ConvOperands kConv2dOperands = {};
constexpr AttributeDoc kConv2dAttributes[] = {
    {"padding", "SAME or VALID"},
    {"stride_h", "rows the window moves by"},
    {"stride_w", "columns the window moves by"},
    {"dilation_h_factor", "rows between positions of the window"},
    {"dilation_w_factor", "columns between positions of the window"},
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"},
    {"quantized_bias_type", "with int16 activations and no bias: INT32 makes sums wrap at 32 bits"},
};

Result<ConvShape> conv_2d_shape_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(ConvShape s, conv_geometry(ctx));
  const Tensor& weights = ctx.input(1);
  const std::int64_t channels = weights.shape[3];
  REEF_REQUIRE(channels >= 1 && s.input_channels >= 1 && s.input_channels % channels == 0,
               "weights ('{}') have {} input channels, which must divide the input's {}", weights.name, channels,
               s.input_channels);
  s.groups = s.input_channels / channels;
  s.output_channels = weights.shape[0];
  REEF_REQUIRE(s.output_channels >= 1 && s.output_channels % s.groups == 0,
               "{} output channels cannot be split into {} groups", s.output_channels, s.groups);
  REEF_REQUIRE(s.depth() <= kMaxDepth, "weights ('{}') take {} products per output; at most {} are supported",
               weights.name, s.depth(), kMaxDepth);
  return s;
}

Status conv_2d_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, conv_2d_shape_of(ctx));
  return give_shape(ctx, {ctx.input(0).shape[0], static_cast<std::int32_t>(s.y.output),
                          static_cast<std::int32_t>(s.x.output), ctx.input(1).shape[0]});
}

Result<Kernel> conv_2d_prepare_hybrid(PrepareContext& ctx, const ConvShape& s) {
  const Tensor& weights = ctx.input(1);
  REEF_ASSIGN_OR_RETURN(HybridOutput hybrid, hybrid_output(ctx, kConv2dOperands, s.output_channels,
                                                           {DataType::kInt8, DataType::kUInt8, DataType::kInt4}));
  // Scales that are all alike count as one.
  const std::vector<float>& scales = weights.quantization->scale;
  const bool per_channel = weights.type != DataType::kUInt8 &&
                           std::any_of(scales.begin(), scales.end(), [&](float scale) { return scale != scales[0]; });
  hybrid.scales_first = !per_channel;
  const kernels::FloatQuantizer quantizer = float_quantizer(ctx, per_channel);
  if (!per_channel && s.groups != 1) {
    return unsupported("groups need one scale per channel when weights are {} and activations float32",
                       ir::type_name(weights.type));
  }
  if (s.groups == 1 && kernels::has_byte_panels())
    return hybrid_panels_kernel(ctx, s, kConv2dOperands, hybrid, quantizer);
  const FromTensor<PackedRows> packed = hybrid_rows(weights, s.depth());
  return Kernel([=](RunContext& run_ctx) {
    if (run_ctx.output(0).elements() == 0) return ok_status();
    const auto rows = packed.get(run_ctx.input(1));
    const QuantizedRows quantized =
        quantize_rows(run_ctx.input(0).values<float>().data(), s.batches, s.input_batch_size(), quantizer);
    run_convolution(run_ctx, s, quantized.values.data(), quantized.zero_points, *rows, kernels::kRunOf8BitProducts,
                    hybrid_sink(run_ctx, hybrid, quantized.scales, kConv2dOperands.bias, s.y.output * s.x.output,
                                s.output_channels));
    return ok_status();
  });
}

Result<Kernel> conv_2d_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, conv_2d_shape_of(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_plain_storage(ctx.input(1)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return ctx.input(1).type == DataType::kFloat32 ? float_panels_kernel(ctx, s, kConv2dOperands)
                                                     : conv_2d_prepare_hybrid(ctx, s);
    case DataType::kUInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling, uint8_scaling(ctx, kConv2dOperands, s.output_channels));
      return dense_kernel<std::uint8_t, std::uint8_t>(ctx, s, kConv2dOperands, scaling);
    }
    case DataType::kInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling,
                            int8_scaling(ctx, kConv2dOperands, s.output_channels, {DataType::kInt8, DataType::kInt4}));
      return dense_kernel<std::int8_t, std::int8_t>(ctx, s, kConv2dOperands, scaling);
    }
    case DataType::kInt16: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling,
                            int16_scaling(ctx, kConv2dOperands, s.output_channels, {DataType::kInt8, DataType::kInt4},
                                          {DataType::kInt32, DataType::kInt64}));
      return dense_kernel<std::int16_t, std::int16_t>(ctx, s, kConv2dOperands, scaling);
    }
    default:
      return unsupported_types(ctx);
  }
}

std::string has_groups(const OpContext& ctx) {
  const Shape& input = ctx.input(0).shape;
  const Shape& weights = ctx.input(1).shape;
  if (input.rank() != 4 || weights.rank() != 4 || weights.last() <= 0 || input.last() == weights.last()) return "";
  return fmt::format("input {} has {} channels, but a filter of weights {} takes {}", chip::shape_text(input),
                     input.last(), chip::shape_text(weights), weights.last());
}

constexpr ChipRule kConv2dChipRules[] = {
    chip::kEvenDilation,
    {
        .id = "conv-groups",
        .says = "Every filter sees all channels: the convolution is not in groups.",
        .suggestion = "Split the channels (SPLIT), convolve each part, and join the results (CONCATENATION).",
        .broken = has_groups,
        .source = RuleSource::kAssumed,
        .evidence = "Groups came with version 6 of the op, after Google's last compiler.",
        .rewrite = "grouped-conv",
    },
};

}  // namespace

constinit const OpDef conv_2d_op = define(
    {.name = name_of(Op::CONV_2D),
     .summary = "2-D convolution, dense or in groups.",
     .inputs = {2, 3},
     .attributes = kConv2dAttributes,
     .types = "float32; uint8; int8 (weights int8 or int4, per tensor or per channel); int16 (weights int8 or int4, "
              "bias int32 or int64); hybrid: float32 with int8, uint8 or int4 weights",
     .traits = trait_set({Trait::kTakesActivation, Trait::kPerImage}),
     .infer = conv_2d_infer,
     .prepare = conv_2d_prepare,
     .chip = {.first_runtime = 10,
              .newest_version = 5,
              .rules = kConv2dChipRules,
              .parameters = input_set({1, 2}),
              .evidence = "Version 3 is seen mapped; 6 is the first with groups, and newer than Google's compiler.",
              .if_newer = "Version 6 is for groups, and one convolution in groups makes all CONV_2D of the "
                          "file that version. Do without groups.",
              .newer_rewrite = "grouped-conv"}});

}  // namespace reef::ops
