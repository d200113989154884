// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED: output[r, u] = act(bias[u] + sum over k of input[r, k] * weights[u, k]).
//
// The input is read as rows of the weights' depth, whatever its shape; with keep_num_dims only its last dimension is
// replaced. Weights without depth give zeros, without bias.
//
// Releases of TFLite disagree on how integer sums are scaled. The current one multiplies by a double and rounds once.
// 2.9 multiplies by fixed-point numbers (32-bit sums; 48-bit sums and 16-bit multipliers for int16), and takes the
// scale of int8 weights with one scale per channel to be 0, so that every output is the zero point. 4- and 2-bit
// weights and 32-bit biases of int16, which 2.9 does not know, are computed as in the current release. Hybrid (float
// activations, integer weights): each row is quantized while running, asymmetrically if the attribute says so (2.9:
// with the scale in double).
#include <fmt/format.h>
#include <cstring>

#include "ops/chip_rules.h"
#include "ops/conv_family.h"
#include "ops/float_panels.h"
#include "ops/hybrid_panels.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::ConvShape;
using kernels::PackedRows;
using kernels::Rounding;

constexpr ConvOperands kFullyConnectedOperands = {};
constexpr AttributeDoc kFullyConnectedAttributes[] = {
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"},
    {"weights_format", "DEFAULT; SHUFFLED4x16INT8 is not supported"},
    {"keep_num_dims", "keep the input's leading dimensions instead of flattening to two"},
    {"asymmetric_quantize_inputs", "float input, integer weights: quantize the input asymmetrically"},
    {"quantized_bias_type", "with int16 activations and no bias: INT32 makes sums wrap at 32 bits"},
};

// Rows times units, as a 1x1 convolution of `rows` images of one pixel.
Result<ConvShape> fully_connected_shape_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Tensor& weights = ctx.input(1);
  const std::string_view format = ctx.attributes().get_enum("weights_format", "DEFAULT");
  if (format != "DEFAULT") {
    return unsupported("weights format {} is not supported; convert the model without shuffled weights", format);
  }
  REEF_REQUIRE(ctx.output_count() == 1, "{} outputs; weights of the default format have one", ctx.output_count());
  REEF_RETURN_IF_ERROR(require_rank(weights, "weights", 2, 2));
  REEF_RETURN_IF_ERROR(check_shape(input.shape));
  ConvShape s;
  s.input_channels = weights.shape[1];
  s.output_channels = weights.shape[0];
  s.y = s.x = {1, 1, 1, 1, 1, 0};
  REEF_REQUIRE(s.depth() <= kMaxDepth, "weights ('{}') take {} products per output; at most {} are supported",
               weights.name, s.depth(), kMaxDepth);
  if (ctx.attributes().get_bool("keep_num_dims")) {
    REEF_REQUIRE(input.shape.rank() >= 1 && (s.depth() == 0 || input.shape.last() == s.depth()),
                 "input ('{}') has shape {}; with keep_num_dims its last dimension must be {}", input.name,
                 input.shape.to_string(), s.depth());
  }
  if (s.depth() == 0) {
    s.batches = input.shape.rank() == 0 ? 1 : input.shape.product(0, input.shape.rank() - 1);
    return s;
  }
  REEF_REQUIRE(input.elements() % s.depth() == 0, "input ('{}') has shape {}, which is not rows of {} elements",
               input.name, input.shape.to_string(), s.depth());
  s.batches = input.elements() / s.depth();
  return s;
}

Status fully_connected_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, fully_connected_shape_of(ctx));
  const auto units = static_cast<std::int32_t>(s.output_channels);
  if (ctx.attributes().get_bool("keep_num_dims")) {
    Shape shape = ctx.input(0).shape;
    shape[shape.rank() - 1] = units;
    ctx.set_output_shape(0, std::move(shape));
  } else {
    ctx.set_output_shape(0, {static_cast<std::int32_t>(s.batches), units});
  }
  return ok_status();
}

// Fixed-point scaling as in 2.9, of weights that have one scale; see the head comment for those that have several.
template <typename In, typename Out>
Result<Kernel> kernel_of_2_9(const PrepareContext& ctx, const ConvShape& s, const Tensor* bias) {
  const Tensor& weights = ctx.input(1);
  constexpr Rounding kRounding = sizeof(In) == 2 ? Rounding::kFixedPoint48 : Rounding::kFixedPoint32;
  if (weights.quantization->is_per_axis()) {
    REEF_RETURN_IF_ERROR(channel_scales(weights, 0).status());
    ctx.note(
        "TFLite 2.9 takes weights with a scale per channel for zeros, so every output of this layer is its zero point");
    return dense_kernel<In, Out>(ctx, s, kFullyConnectedOperands, {kRounding, {0.0}, 0});
  }
  REEF_ASSIGN_OR_RETURN(const double factor, tensor_factor(ctx.input(0), weights, bias, ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const QuantParams w, per_tensor_quantization(weights, "weights"));
  return dense_kernel<In, Out>(ctx, s, kFullyConnectedOperands, {kRounding, {factor}, w.zero_point});
}

// Scaling in double, as in the current release.
template <typename In, typename Out>
Result<Kernel> current_kernel(const PrepareContext& ctx, const ConvShape& s, const Tensor* bias, Rounding rounding) {
  const Tensor& weights = ctx.input(1);
  REEF_ASSIGN_OR_RETURN(const std::vector<double> factors, channel_factors(ctx.input(0), weights, 0, ctx.output(0)));
  if (weights.quantization->is_per_axis()) {
    REEF_RETURN_IF_ERROR(require_symmetric(weights));
    return dense_kernel<In, Out>(ctx, s, kFullyConnectedOperands, {rounding, factors, 0});
  }
  REEF_RETURN_IF_ERROR(tensor_factor(ctx.input(0), weights, bias, ctx.output(0)).status());  // checks the bias's scale
  REEF_ASSIGN_OR_RETURN(const QuantParams w, per_tensor_quantization(weights, "weights"));
  return dense_kernel<In, Out>(ctx, s, kFullyConnectedOperands, {rounding, {factors[0]}, w.zero_point});
}

Result<Kernel> prepare_uint8(PrepareContext& ctx, const ConvShape& s) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "weights", {DataType::kUInt8}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kUInt8, DataType::kInt16}));
  REEF_REQUIRE(!ctx.input(1).quantization->is_per_axis(), "weights ('{}') are uint8; they must have a single scale",
               ctx.input(1).name);
  REEF_ASSIGN_OR_RETURN(const Tensor* bias,
                        optional_bias(ctx, kFullyConnectedOperands.bias, {DataType::kInt32}, s.output_channels));
  if (ctx.output(0).type == DataType::kUInt8) {
    return as_in_2_9(ctx) ? kernel_of_2_9<std::uint8_t, std::uint8_t>(ctx, s, bias)
                          : current_kernel<std::uint8_t, std::uint8_t>(ctx, s, bias, Rounding::kReal32);
  }
  REEF_RETURN_IF_ERROR(require_symmetric(ctx.output(0)));
  return as_in_2_9(ctx) ? kernel_of_2_9<std::uint8_t, std::int16_t>(ctx, s, bias)
                        : current_kernel<std::uint8_t, std::int16_t>(ctx, s, bias, Rounding::kReal32);
}

Result<Kernel> fully_connected_prepare_int8(PrepareContext& ctx, const ConvShape& s) {
  const Tensor& weights = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_type(weights, "weights", {DataType::kInt8, DataType::kInt4, DataType::kInt2}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt8}));
  REEF_ASSIGN_OR_RETURN(const Tensor* bias,
                        optional_bias(ctx, kFullyConnectedOperands.bias, {DataType::kInt32}, s.output_channels));
  if (weights.type == DataType::kInt8 && as_in_2_9(ctx)) return kernel_of_2_9<std::int8_t, std::int8_t>(ctx, s, bias);
  if (weights.type != DataType::kInt8) REEF_RETURN_IF_ERROR(require_symmetric(weights));
  return current_kernel<std::int8_t, std::int8_t>(ctx, s, bias, Rounding::kReal32);
}

// int16 weights came last and are scaled in fixed point again, in all releases that have them.
Result<Kernel> int16_weights_kernel(const PrepareContext& ctx, const ConvShape& s, const Tensor* bias) {
  const Tensor& weights = ctx.input(1);
  REEF_ASSIGN_OR_RETURN(std::vector<double> factors, channel_factors(ctx.input(0), weights, 0, ctx.output(0)));
  if (!weights.quantization->is_per_axis()) {
    REEF_ASSIGN_OR_RETURN(const double factor, tensor_factor(ctx.input(0), weights, bias, ctx.output(0)));
    factors = {factor};
  }
  return dense_kernel<std::int16_t, std::int16_t>(ctx, s, kFullyConnectedOperands,
                                                  {Rounding::kFixedPoint48, factors, 0});
}

Result<Kernel> fully_connected_prepare_int16(PrepareContext& ctx, const ConvShape& s) {
  const Tensor& weights = ctx.input(1);
  REEF_RETURN_IF_ERROR(
      require_type(weights, "weights", {DataType::kInt8, DataType::kInt4, DataType::kInt2, DataType::kInt16}));
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt16}));
  for (const Tensor* tensor : {&ctx.input(0), &weights, &ctx.output(0)}) {
    REEF_RETURN_IF_ERROR(require_symmetric(*tensor));
  }
  REEF_ASSIGN_OR_RETURN(const Tensor* bias, optional_bias(ctx, kFullyConnectedOperands.bias,
                                                          {DataType::kInt32, DataType::kInt64}, s.output_channels));
  const bool wraps = sums_wrap(ctx, bias);
  if (weights.type == DataType::kInt16) return int16_weights_kernel(ctx, s, bias);
  if (weights.type == DataType::kInt8 && !wraps && as_in_2_9(ctx)) {
    return kernel_of_2_9<std::int16_t, std::int16_t>(ctx, s, bias);
  }
  return current_kernel<std::int16_t, std::int16_t>(ctx, s, bias, wraps ? Rounding::kReal32 : Rounding::kReal64);
}

Result<Kernel> fully_connected_prepare_hybrid(PrepareContext& ctx, const ConvShape& s) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
  REEF_ASSIGN_OR_RETURN(const HybridOutput hybrid,
                        hybrid_output(ctx, kFullyConnectedOperands, s.output_channels,
                                      {DataType::kInt8, DataType::kUInt8, DataType::kInt4, DataType::kInt2}));
  const kernels::FloatQuantizer quantizer =
      float_quantizer(ctx, ctx.attributes().get_bool("asymmetric_quantize_inputs"));
  if (kernels::has_byte_panels()) return hybrid_panels_kernel(ctx, s, kFullyConnectedOperands, hybrid, quantizer);
  const FromTensor<PackedRows> packed = hybrid_rows(ctx.input(1), s.depth());
  return Kernel([=](RunContext& run_ctx) {
    const auto rows = packed.get(run_ctx.input(1));
    const QuantizedRows quantized =
        quantize_rows(run_ctx.input(0).values<float>().data(), s.batches, s.depth(), quantizer);
    run_convolution(run_ctx, s, quantized.values.data(), quantized.zero_points, *rows, kernels::kRunOf8BitProducts,
                    hybrid_sink(run_ctx, hybrid, quantized.scales, kFullyConnectedOperands.bias, 1, s.output_channels));
    return ok_status();
  });
}

Result<Kernel> fully_connected_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, fully_connected_shape_of(ctx));
  REEF_RETURN_IF_ERROR(require_plain_storage(ctx.input(1)));
  if (s.depth() == 0 || ctx.output(0).elements() == 0) {
    return Kernel([](RunContext& run_ctx) {
      std::memset(run_ctx.output(0).data, 0, run_ctx.output(0).bytes);
      return ok_status();
    });
  }
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      if (ctx.input(1).type != DataType::kFloat32) return fully_connected_prepare_hybrid(ctx, s);
      REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kFloat32}));
      return float_panels_kernel(ctx, s, kFullyConnectedOperands);
    case DataType::kUInt8:
      return prepare_uint8(ctx, s);
    case DataType::kInt8:
      return fully_connected_prepare_int8(ctx, s);
    case DataType::kInt16:
      return fully_connected_prepare_int16(ctx, s);
    default:
      return unsupported_types(ctx);
  }
}

std::string has_shuffled_weights(const OpContext& ctx) {
  const std::string_view format = ctx.attributes().get_enum("weights_format", "DEFAULT");
  return format == "DEFAULT" ? "" : fmt::format("its weights are stored as {}", format);
}

std::string has_rows_and_columns(const OpContext& ctx) {
  const Shape& output = ctx.output(0).shape;
  const auto above_1 = std::count_if(output.begin(), output.end(), [](std::int32_t size) { return size > 1; });
  return above_1 <= 1 ? "" : fmt::format("output is {}", chip::shape_text(output));
}

constexpr ChipRule kFullyConnectedChipRules[] = {
    {
        .id = "fully-connected-format",
        .says = "Weights are stored in the default format.",
        .suggestion = "Convert the model without shuffled weights.",
        .broken = has_shuffled_weights,
        .evidence = "Table 1",
    },
    {
        .id = "fully-connected-rows",
        .says = "The output is one-dimensional: at most one of its dimensions is above 1.",
        .suggestion = "Write it as a CONV_2D with a 1x1 filter over an image with the rows as pixels, which maps.",
        .broken = has_rows_and_columns,
        .evidence =
            "Table 1; edgetpu#27: \"a fully-connected or softmax layer with 2D output\". A log of YOLOv9 shows the "
            "products of many rows with one column mapped.",
        .rewrite = "matmul",
    },
};

}  // namespace

constinit const OpDef fully_connected_op = define(
    {.name = name_of(Op::FULLY_CONNECTED),
     .summary = "Rows of the input times a matrix of weights.",
     .inputs = {2, 3},
     .outputs = {1, 2},
     .attributes = kFullyConnectedAttributes,
     .types = "float32; uint8 (output uint8 or int16); int8 (weights int8, int4 or int2, per tensor or per channel); "
              "int16 (weights int8, int4, int2 or int16; bias int32 or int64); hybrid: float32 with int8, uint8, int4 "
              "or int2 weights",
     .traits = trait_set({Trait::kTakesActivation, Trait::kPerImage}),
     .infer = fully_connected_infer,
     .prepare = fully_connected_prepare,
     .chip = {.first_runtime = 10,
              .newest_version = 4,
              .rules = kFullyConnectedChipRules,
              .parameters = input_set({1, 2}),
              .evidence =
                  "Version 4 is seen mapped, also with a scale per output; a user's log refuses the version that "
                  "keep_num_dims needs, which is 5.",
              .if_newer = "Version 5 is for inputs of more than two dimensions that are kept, and one such "
                          "layer makes all FULLY_CONNECTED of the file that version. Flatten what goes into a dense "
                          "layer, or use a convolution with a 1x1 filter.",
              .newer_rewrite = "matmul"}});

}  // namespace reef::ops
