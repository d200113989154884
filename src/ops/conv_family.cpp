// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_family.h"

namespace reef::ops {

Result<kernels::ConvAxis> conv_axis(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                                    std::string_view padding) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  REEF_REQUIRE(window >= 1 && stride >= 1 && dilation >= 1 && window < kLimit && stride < kLimit && dilation < kLimit,
               "window {}, stride {} and dilation {} must all be at least 1", window, stride, dilation);
  const std::int64_t reach = (window - 1) * dilation + 1;
  // TFLite's (input + stride - reach) / stride, which truncates towards zero.
  const bool empty = padding == "VALID" ? input < reach && input + stride - reach > -stride : input == 0;
  if (empty && (padding == "VALID" || padding == "SAME"))
    return kernels::ConvAxis{input, 0, window, stride, dilation, 0};
  REEF_ASSIGN_OR_RETURN(const WindowAxis axis, window_axis(input, window, stride, dilation, padding));
  return kernels::ConvAxis{input, axis.output_size, window, stride, dilation, axis.pad_before};
}

namespace {

// An axis with as many zeros before and behind the image as the attributes say. No file says so: the interpreter joins
// a PAD with a convolution this way. Windows always touch the image.
Result<kernels::ConvAxis> explicitly_padded_axis(kernels::ConvAxis axis, std::int64_t before, std::int64_t after) {
  const std::int64_t reach = (axis.window - 1) * axis.dilation + 1;
  REEF_REQUIRE(before >= 0 && before < reach && after >= 0 && after < reach && axis.input + before + after >= reach,
               "a window that reaches over {} positions cannot have {} and {} zeros around {}", reach, before, after,
               axis.input);
  axis.output = (axis.input + before + after - reach) / axis.stride + 1;
  axis.pad_before = before;
  return axis;
}

}  // namespace

Result<kernels::ConvShape> conv_geometry(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& weights = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_RETURN_IF_ERROR(require_rank(weights, "weights", 4, 4));
  REEF_RETURN_IF_ERROR(check_shape(input.shape));
  REEF_RETURN_IF_ERROR(check_shape(weights.shape));
  const ir::Attributes& a = ctx.attributes();
  const bool is_explicit = a.get_enum("padding", "SAME") == "EXPLICIT";
  const std::string_view padding = is_explicit ? "SAME" : a.get_enum("padding", "SAME");
  kernels::ConvShape shape;
  shape.batches = input.shape[0];
  shape.input_channels = input.shape[3];
  REEF_ASSIGN_OR_RETURN(shape.y, conv_axis(input.shape[1], weights.shape[1], a.get_int("stride_h"),
                                           a.get_int("dilation_h_factor", 1), padding));
  REEF_ASSIGN_OR_RETURN(shape.x, conv_axis(input.shape[2], weights.shape[2], a.get_int("stride_w"),
                                           a.get_int("dilation_w_factor", 1), padding));
  if (!is_explicit) return shape;
  REEF_ASSIGN_OR_RETURN(shape.y, explicitly_padded_axis(shape.y, a.get_int("pad_top"), a.get_int("pad_bottom")));
  REEF_ASSIGN_OR_RETURN(shape.x, explicitly_padded_axis(shape.x, a.get_int("pad_left"), a.get_int("pad_right")));
  return shape;
}

BlockSize output_block_size(const kernels::ConvShape& s, double products, std::int64_t channel_step) {
  constexpr double kProductsPerBlock = 5e7;  // tens of milliseconds
  constexpr std::int64_t kFewColumns = 4;    // that still share what is read of the weights
  const double per_pixel = std::max(products, 1.0) * static_cast<double>(s.output_channels);
  if (per_pixel * static_cast<double>(s.x.output) <= kProductsPerBlock) return {s.x.output, s.output_channels};
  if (per_pixel * kFewColumns <= kProductsPerBlock) {
    return {static_cast<std::int64_t>(kProductsPerBlock / per_pixel) / kFewColumns * kFewColumns, s.output_channels};
  }
  const double steps = kProductsPerBlock / (kFewColumns * std::max(products, 1.0) * static_cast<double>(channel_step));
  return {kFewColumns, std::max<std::int64_t>(static_cast<std::int64_t>(steps), 1) * channel_step};
}

Result<IntScaling> uint8_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels) {
  const Tensor& weights = ctx.input(at.weights);
  REEF_RETURN_IF_ERROR(require_type(weights, "weights", {DataType::kUInt8}));
  REEF_ASSIGN_OR_RETURN(const Tensor* bias, optional_bias(ctx, at.bias, {DataType::kInt32}, channels));
  REEF_ASSIGN_OR_RETURN(const double factor, tensor_factor(ctx.input(at.input), weights, bias, ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const QuantParams w, per_tensor_quantization(weights, "weights"));
  return IntScaling{kernels::Rounding::kFixedPoint32, {factor}, w.zero_point};
}

Result<IntScaling> int8_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                std::initializer_list<DataType> weight_types) {
  const Tensor& weights = ctx.input(at.weights);
  REEF_RETURN_IF_ERROR(require_type(weights, "weights", weight_types));
  REEF_RETURN_IF_ERROR(require_symmetric(weights));
  REEF_RETURN_IF_ERROR(optional_bias(ctx, at.bias, {DataType::kInt32}, channels).status());
  IntScaling scaling;
  REEF_ASSIGN_OR_RETURN(scaling.factors, channel_factors(ctx.input(at.input), weights, at.weights_axis, ctx.output(0)));
  return scaling;
}

Result<IntScaling> int16_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                 std::initializer_list<DataType> weight_types,
                                 std::initializer_list<DataType> bias_types) {
  const Tensor& weights = ctx.input(at.weights);
  REEF_RETURN_IF_ERROR(require_type(weights, "weights", weight_types));
  for (const Tensor* tensor : {&weights, &ctx.input(at.input), &ctx.output(0)}) {
    REEF_RETURN_IF_ERROR(require_symmetric(*tensor));
  }
  REEF_ASSIGN_OR_RETURN(const Tensor* bias, optional_bias(ctx, at.bias, bias_types, channels));
  const bool may_wrap = std::find(bias_types.begin(), bias_types.end(), DataType::kInt32) != bias_types.end();
  IntScaling scaling;
  if (!may_wrap || !sums_wrap(ctx, bias)) scaling.rounding = kernels::Rounding::kFixedPoint48;
  REEF_ASSIGN_OR_RETURN(scaling.factors, channel_factors(ctx.input(at.input), weights, at.weights_axis, ctx.output(0)));
  return scaling;
}

bool sums_wrap(const OpContext& ctx, const Tensor* bias) {
  return bias != nullptr ? bias->type == DataType::kInt32 : ctx.attributes().get_enum("quantized_bias_type") == "INT32";
}

Result<HybridOutput> hybrid_output(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                   std::initializer_list<DataType> weight_types) {
  const Tensor& weights = ctx.input(at.weights);
  REEF_RETURN_IF_ERROR(require_type(weights, "weights", weight_types));
  REEF_RETURN_IF_ERROR(require_symmetric(weights));
  REEF_RETURN_IF_ERROR(optional_bias(ctx, at.bias, {DataType::kFloat32}, channels).status());
  REEF_REQUIRE(weights.quantization->is_quantized(), "weights ('{}') have no quantization", weights.name);
  HybridOutput hybrid;
  REEF_ASSIGN_OR_RETURN(hybrid.range, float_activation_range(ctx.attributes()));
  REEF_ASSIGN_OR_RETURN(hybrid.channel_scales, channel_scales(weights, at.weights_axis));
  return hybrid;
}

FromTensor<kernels::PackedRows> hybrid_rows(const Tensor& weights, std::int64_t depth) {
  return FromTensor<kernels::PackedRows>(weights, [depth](const Tensor& tensor) {
    Tensor bytes = tensor;
    if (bytes.type == DataType::kUInt8) bytes.type = DataType::kInt8;
    return pack_rows(bytes, depth, 0);
  });
}

}  // namespace reef::ops
