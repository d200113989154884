// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D: each input channel is convolved on its own, with one or more windows.
//
// output[b, y, x, c * m + i] = act(bias[c * m + i] + sum over ky, kx of
//                                  input[b, y * stride_h - pad + ky * dilation_h, ..., c] * weights[0, ky, kx, c * m +
//                                  i])
// The multiplier m follows from the shapes; the attribute depth_multiplier of old models is not needed.
//
// Types and their arithmetic are those of CONV_2D, except: int16 takes 64-bit biases only, and hybrid activations are
// always quantized asymmetrically. Where hybrid weights have one scale for all channels, TFLite reads past its array;
// here the scale serves all channels.
#include <fmt/format.h>

#include "kernels/conv/depthwise_bytes.h"
#include "kernels/conv/depthwise_float.h"
#include "ops/chip_rules.h"
#include "ops/conv_family.h"
#include "ops/op_def.h"
#include "ops/panel_blocks.h"

namespace reef::ops {
namespace {

using kernels::ConvShape;
using Weights16 = std::vector<std::int16_t>;

constexpr ConvOperands kDepthwiseConv2dOperands = {.weights_axis = 3};
constexpr AttributeDoc kDepthwiseConv2dAttributes[] = {
    {"padding", "SAME or VALID"},
    {"stride_h", "rows the window moves by"},
    {"stride_w", "columns the window moves by"},
    {"dilation_h_factor", "rows between positions of the window"},
    {"dilation_w_factor", "columns between positions of the window"},
    {"depth_multiplier", "ignored: follows from the shapes"},
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"},
};

Result<ConvShape> depthwise_conv_2d_shape_of(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(ConvShape s, conv_geometry(ctx));
  const Tensor& weights = ctx.input(1);
  s.output_channels = weights.shape[3];
  REEF_REQUIRE(weights.shape[0] == 1, "weights ('{}') have shape {}; the first dimension must be 1", weights.name,
               weights.shape.to_string());
  REEF_REQUIRE(s.input_channels >= 1 && s.output_channels % s.input_channels == 0,
               "weights ('{}') have {} channels, which must be a multiple of the input's {}", weights.name,
               s.output_channels, s.input_channels);
  return s;
}

Status depthwise_conv_2d_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, depthwise_conv_2d_shape_of(ctx));
  return give_shape(ctx, {ctx.input(0).shape[0], static_cast<std::int32_t>(s.y.output),
                          static_cast<std::int32_t>(s.x.output), ctx.input(1).shape[3]});
}

FromTensor<Weights16> depthwise_conv_2d_widened(const Tensor& weights, std::int32_t zero_point) {
  return FromTensor<Weights16>(weights, [zero_point](const Tensor& tensor) {
    Weights16 values(static_cast<std::size_t>(tensor.elements()));
    widen_elements(tensor, 0, tensor.elements(), zero_point, values.data());
    return values;
  });
}

// The cost of an output element: its products take about four times as long as those of dense convolutions.
double depthwise_conv_2d_products_per_output(const ConvShape& s) { return 4.0 * static_cast<double>(s.taps()); }

template <typename In, typename Sink>
void depthwise_conv_2d_run_int(RunContext& ctx, const ConvShape& s, const In* input,
                               std::span<const std::int32_t> zero_points, const Weights16& weights, std::int64_t run,
                               const Sink& sink) {
  for_each_output_block(ctx, s, s.output_rows(), depthwise_conv_2d_products_per_output(s),
                        s.output_channels / s.input_channels, [&](const kernels::OutputBlock& block) {
                          kernels::in_vectors([&] {
                            kernels::depthwise_convolve(s, input, zero_points, weights.data(), run, block, sink);
                          });
                        });
}

// body(row_begin, row_end, block_begin, block_end) for the whole output, on all threads; `blocks`: of channels, each of
// which may be computed by itself. `least`: products of a part, some microseconds; `together`: rows that share inputs.
template <typename Body>
void for_each_part(const RunContext& ctx, const ConvShape& s, double least, std::int64_t together, std::int64_t blocks,
                   const Body& body) {
  const std::int64_t rows = s.output_rows();
  const double products = static_cast<double>(s.taps() * s.x.output) * static_cast<double>(s.output_channels);
  const TwoWayParts parts =
      two_way_parts(ctx.environment()->threads().threads(), rows, products, least, together, blocks);
  ctx.parallel_for(parts.of_rows * parts.of_columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / parts.of_columns, block = i % parts.of_columns;
      body(part_begin(row, parts.of_rows, rows), part_begin(row + 1, parts.of_rows, rows),
           part_begin(block, parts.of_columns, blocks), part_begin(block + 1, parts.of_columns, blocks));
    }
  });
}

// The shape of the same convolution of an image whose channels are repeated, so that each has one output; unless that
// image would be huge.
ConvShape with_channels_repeated(ConvShape s) {
  constexpr double kMostElements = 1 << 26;
  const double elements =
      static_cast<double>(s.batches * s.y.input * s.x.input) * static_cast<double>(s.output_channels);
  if (elements <= kMostElements) s.input_channels = s.output_channels;
  return s;
}

// Where a kernel finds its input: in the input, or repeated in the scratch memory that prepare has asked for.
template <typename T>
void request_repeated(PrepareContext& ctx, const ConvShape& s, const ConvShape& repeated) {
  if (s.input_channels == repeated.input_channels) return;
  ctx.request_scratch(s.batches * repeated.input_batch_size() * static_cast<std::int64_t>(sizeof(T)));
}
template <typename T>
const T* repeated_input(const RunContext& ctx, const ConvShape& s, const ConvShape& repeated) {
  const T* input = ctx.input(0).values<T>().data();
  const std::int64_t times = repeated.input_channels / s.input_channels;
  if (times == 1) return input;
  T* to = reinterpret_cast<T*>(ctx.scratch().data());
  constexpr std::int64_t kGrain = 1 << 14;
  ctx.parallel_for(s.batches * s.input_batch_size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels::repeat_channels(input + begin, end - begin, times, to + begin * times);
  });
  return to;
}

// T: int8_t or uint8_t. Channels with several outputs are repeated first.
template <typename T>
Kernel byte_kernel(PrepareContext& ctx, const ConvShape& narrow, const kernels::Requantizer& requantizer,
                   std::int32_t input_zero_point, std::int32_t weights_zero_point) {
  const auto exact = std::make_shared<const kernels::Requantizer>(requantizer);
  const ConvShape s = with_channels_repeated(narrow);
  request_repeated<T>(ctx, narrow, s);
  const FromTensor<kernels::DepthwiseWeights> packed(ctx.input(1), [s, weights_zero_point](const Tensor& tensor) {
    Weights16 wide(static_cast<std::size_t>(tensor.elements()));
    widen_elements(tensor, 0, tensor.elements(), weights_zero_point, wide.data());
    return kernels::pack_depthwise(s, wide.data());
  });
  const ByteScalingSource scaling(
      ctx, 1, kDepthwiseConv2dOperands.bias, [=](const Tensor& weights, const std::int64_t* bias) {
        return kernels::depthwise_scaling<T>(s, *packed.get(weights), exact, bias, input_zero_point);
      });
  return [=](RunContext& run_ctx) {
    if (s.output_pixels() == 0 || s.output_channels == 0) return ok_status();
    const auto weights = packed.get(run_ctx.input(1));
    const auto scale = scaling(run_ctx);
    const T* input = repeated_input<T>(run_ctx, narrow, s);
    T* output = run_ctx.output(0).mutable_values<T>().data();
    const std::int64_t blocks = (s.output_channels + kernels::kDepthwiseBlock - 1) / kernels::kDepthwiseBlock;
    const double least = kernels::active_target() == kernels::SimdTarget::kAvx512 ? 100'000 : 40'000;
    const std::int64_t together = std::min<std::int64_t>(2 * s.y.dilation, 8);
    for_each_part(
        run_ctx, s, least, together, 1, [&](std::int64_t begin, std::int64_t end, std::int64_t, std::int64_t) {
          kernels::depthwise_bytes<T>(s, input, input_zero_point, *weights, *scale, begin, end, 0, blocks, output);
        });
    return ok_status();
  };
}

template <typename T>
Result<Kernel> depthwise_conv_2d_quantized_kernel(PrepareContext& ctx, const ConvShape& s, const IntScaling& scaling) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(ctx.input(0), "input"));
  REEF_ASSIGN_OR_RETURN(const kernels::Requantizer requantizer,
                        make_requantizer(ctx, scaling.rounding, scaling.factors));
  if constexpr (sizeof(T) == 1) {
    // With one input channel it is a convolution like any other.
    if (s.input_channels == 1 && s.output_channels > 1 && kernels::has_byte_panels() &&
        kernels::suits_byte_scaling(requantizer)) {
      return byte_panels_kernel<T>(
          ctx, s,
          {0, 1, kDepthwiseConv2dOperands.bias, in.zero_point, scaling.weights_zero_point, /*has_channels_last=*/true},
          requantizer);
    }
    if (kernels::has_depthwise_bytes(with_channels_repeated(s)) && kernels::suits_byte_scaling(requantizer)) {
      return byte_kernel<T>(ctx, s, requantizer, in.zero_point, scaling.weights_zero_point);
    }
  }
  const FromTensor<Weights16> packed = depthwise_conv_2d_widened(ctx.input(1), scaling.weights_zero_point);
  const std::int64_t run = sizeof(T) == 1 ? kernels::kRunOf8BitProducts : kernels::kRunOf16By8BitProducts;
  return Kernel([=, zero_point = in.zero_point](RunContext& run_ctx) {
    const auto weights = packed.get(run_ctx.input(1));
    const std::vector<std::int64_t> bias = bias_values(run_ctx, kDepthwiseConv2dOperands.bias);
    depthwise_conv_2d_run_int(run_ctx, s, run_ctx.input(0).values<T>().data(), {&zero_point, 1}, *weights, run,
                              requantizing_sink<T>(run_ctx, requantizer, bias, s.output_channels));
    return ok_status();
  });
}

Result<Kernel> depthwise_conv_2d_prepare_float(PrepareContext& ctx, const ConvShape& narrow) {
  const ConvShape s = with_channels_repeated(narrow);
  request_repeated<float>(ctx, narrow, s);
  REEF_RETURN_IF_ERROR(
      optional_bias(ctx, kDepthwiseConv2dOperands.bias, {DataType::kFloat32}, s.output_channels).status());
  REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(ctx.attributes()));
  return Kernel([=](RunContext& run_ctx) {
    if (s.output_pixels() == 0 || s.output_channels == 0) return ok_status();
    const float* input = repeated_input<float>(run_ctx, narrow, s);
    const float* weights = run_ctx.input(1).values<float>().data();
    float* output = run_ctx.output(0).mutable_values<float>().data();
    const kernels::FloatOutput finish = float_output(run_ctx, kDepthwiseConv2dOperands.bias, range);
    constexpr double kLeast = 60'000;
    constexpr std::int64_t kTogether = 2, kBlock = 32;  // rows; channels
    // Channels with several outputs stay together: the reference computes them.
    const std::int64_t blocks =
        s.output_channels == s.input_channels ? std::max<std::int64_t>(s.output_channels / kBlock, 1) : 1;
    const auto channel = [&](std::int64_t block) { return block == blocks ? s.output_channels : block * kBlock; };
    for_each_part(run_ctx, s, kLeast, kTogether, blocks,
                  [&](std::int64_t row_begin, std::int64_t row_end, std::int64_t first, std::int64_t last) {
                    kernels::depthwise_float_rows(s, input, weights, finish, row_begin, row_end, channel(first),
                                                  channel(last), output);
                  });
    return ok_status();
  });
}

Result<Kernel> depthwise_conv_2d_prepare_hybrid(PrepareContext& ctx, const ConvShape& s) {
  const Tensor& weights = ctx.input(1);
  REEF_ASSIGN_OR_RETURN(const HybridOutput hybrid,
                        hybrid_output(ctx, kDepthwiseConv2dOperands, s.output_channels, {DataType::kInt8}));
  const FromTensor<Weights16> packed = depthwise_conv_2d_widened(weights, 0);
  const kernels::FloatQuantizer quantizer = float_quantizer(ctx, true);
  return Kernel([=](RunContext& run_ctx) {
    if (run_ctx.output(0).elements() == 0) return ok_status();
    const auto values = packed.get(run_ctx.input(1));
    const QuantizedRows quantized =
        quantize_rows(run_ctx.input(0).values<float>().data(), s.batches, s.input_batch_size(), quantizer);
    depthwise_conv_2d_run_int(run_ctx, s, quantized.values.data(), quantized.zero_points, *values,
                              kernels::kRunOf8BitProducts,
                              hybrid_sink(run_ctx, hybrid, quantized.scales, kDepthwiseConv2dOperands.bias,
                                          s.y.output * s.x.output, s.output_channels));
    return ok_status();
  });
}

Result<Kernel> depthwise_conv_2d_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, depthwise_conv_2d_shape_of(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_plain_storage(ctx.input(1)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return ctx.input(1).type == DataType::kFloat32 ? depthwise_conv_2d_prepare_float(ctx, s)
                                                     : depthwise_conv_2d_prepare_hybrid(ctx, s);
    case DataType::kUInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling, uint8_scaling(ctx, kDepthwiseConv2dOperands, s.output_channels));
      return depthwise_conv_2d_quantized_kernel<std::uint8_t>(ctx, s, scaling);
    }
    case DataType::kInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling, int8_scaling(ctx, kDepthwiseConv2dOperands, s.output_channels,
                                                                   {DataType::kInt8, DataType::kInt4}));
      return depthwise_conv_2d_quantized_kernel<std::int8_t>(ctx, s, scaling);
    }
    case DataType::kInt16: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling, int16_scaling(ctx, kDepthwiseConv2dOperands, s.output_channels,
                                                                    {DataType::kInt8}, {DataType::kInt64}));
      return depthwise_conv_2d_quantized_kernel<std::int16_t>(ctx, s, scaling);
    }
    default:
      return unsupported_types(ctx);
  }
}

std::string is_dilated(const OpContext& ctx) {
  const auto [y, x] = chip::dilation(ctx);
  return y <= 1 && x <= 1 ? "" : fmt::format("the dilation is {} in y and {} in x", y, x);
}

constexpr ChipRule kDepthwiseConv2dChipRules[] = {
    {
        .id = "depthwise-dilation",
        .says = "It is not dilated.",
        .suggestion = "Compile for runtime 12 or later, or use a larger filter that is not dilated.",
        .broken = is_dilated,
        .evidence = "Table 1 says so up to runtime 12; a dilation of 2 is seen mapped in a file for 12.",
        .runtimes = kUpTo11,
    },
    chip::kEvenDilation,
};

}  // namespace

constinit const OpDef depthwise_conv_2d_op =
    define({.name = name_of(Op::DEPTHWISE_CONV_2D),
            .summary = "2-D convolution of each channel on its own.",
            .inputs = {2, 3},
            .attributes = kDepthwiseConv2dAttributes,
            .types = "float32; uint8; int8 (weights int8 or int4, per tensor or per channel); int16 (weights int8, "
                     "bias int64); hybrid: float32 with int8 weights",
            .traits = trait_set({Trait::kTakesActivation, Trait::kPerImage}),
            .infer = depthwise_conv_2d_infer,
            .prepare = depthwise_conv_2d_prepare,
            .chip = {.first_runtime = 10, .rules = kDepthwiseConv2dChipRules, .parameters = input_set({1, 2})}});

}  // namespace reef::ops
