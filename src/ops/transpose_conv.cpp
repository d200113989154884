// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: the gradient of a convolution, used to enlarge images.
//
// Inputs: output shape, weights [output channels, height, width, input channels], input, optional bias. Every input
// pixel (y, x) adds input[y, x, :] . weights[o, ky, kx, :] to output[y * stride_h - pad + ky, x * stride_w - pad + kx,
// o]; what falls outside is dropped. The padding is that of a convolution over an image of the output's size.
//
// Computed as ordinary convolutions (kernels/conv/transpose_phases.h) or, where these do not suit, per output pixel,
// over input pixels in row-major order, which is the reference's order of float additions either way.
// Integer sums are exact and scaled as in CONV_2D. Hybrid (float input, int8 weights): each image is quantized
// asymmetrically while running, and products are scaled and added in float, one by one, as TFLite does.
#include "kernels/conv/conv_float.h"
#include "kernels/conv/transpose_taps.h"
#include "ops/conv_family.h"
#include "ops/op_def.h"
#include "ops/transpose_panels.h"

namespace reef::ops {
namespace {

using kernels::ConvAxis;
using kernels::ConvShape;
using kernels::OutputBlock;
using kernels::PackedColumns;
using kernels::PackedRows;

constexpr int kOutputShape = 0, kWeights = 1, kInput = 2, kBias = 3;
constexpr ConvOperands kTransposeConvOperands = {.input = kInput, .weights = kWeights, .bias = kBias};
constexpr AttributeDoc kTransposeConvAttributes[] = {
    {"padding", "SAME or VALID"},
    {"stride_h", "output rows between windows of neighbouring input rows"},
    {"stride_w", "the same for columns"},
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1"},
    {"quantized_bias_type", "with int16 activations and no bias: INT32 makes sums wrap at 32 bits"},
};

Status transpose_conv_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(kOutputShape), "output shape", {DataType::kInt32}));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, ctx.ints(kOutputShape));
  REEF_REQUIRE(sizes.size() == 4, "the output shape has {} dimensions; 4 are needed", sizes.size());
  std::vector<std::int32_t> dims;
  for (const std::int64_t size : sizes) {
    REEF_REQUIRE(size >= 0 && size <= INT32_MAX, "the output shape has a dimension of {}", size);
    dims.push_back(static_cast<std::int32_t>(size));
  }
  Shape shape(std::move(dims));
  REEF_RETURN_IF_ERROR(check_shape(shape));
  return give_shape(ctx, std::move(shape));
}

// TFLite's padding of a forward convolution whose input has this op's output size.
Result<ConvAxis> transpose_axis(std::int64_t input, std::int64_t output, std::int64_t window, std::int64_t stride,
                                std::string_view padding) {
  REEF_REQUIRE(window >= 1 && stride >= 1 && stride <= INT32_MAX, "window {} and stride {} must be at least 1", window,
               stride);
  REEF_REQUIRE(padding == "SAME" || padding == "VALID", "padding {} is not known; SAME or VALID is needed", padding);
  const std::int64_t forward = padding == "SAME" ? (output + stride - 1) / stride : (output + stride - window) / stride;
  const std::int64_t total = std::max<std::int64_t>((forward - 1) * stride + window - output, 0);
  return ConvAxis{input, output, window, stride, 1, total / 2};
}

Result<ConvShape> transpose_conv_shape_of(const OpContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const Tensor& weights = ctx.input(kWeights);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_RETURN_IF_ERROR(require_rank(weights, "weights", 4, 4));
  const Shape& out = ctx.output(0).shape;
  REEF_REQUIRE(out.rank() == 4 && out[0] == input.shape[0] && out[3] == weights.shape[0],
               "the output shape {} does not fit {} images and {} output channels", out.to_string(), input.shape[0],
               weights.shape[0]);
  REEF_REQUIRE(input.shape[3] == weights.shape[3], "input has {} channels, but weights ('{}') have {}", input.shape[3],
               weights.name, weights.shape[3]);
  const ir::Attributes& a = ctx.attributes();
  const std::string_view padding = a.get_enum("padding", "SAME");
  ConvShape s;
  s.batches = input.shape[0];
  s.input_channels = input.shape[3];
  s.output_channels = weights.shape[0];
  REEF_REQUIRE(s.input_channels <= kMaxDepth, "{} input channels; at most {} are supported", s.input_channels,
               kMaxDepth);
  REEF_ASSIGN_OR_RETURN(s.y, transpose_axis(input.shape[1], out[1], weights.shape[1], a.get_int("stride_h"), padding));
  REEF_ASSIGN_OR_RETURN(s.x, transpose_axis(input.shape[2], out[2], weights.shape[2], a.get_int("stride_w"), padding));
  // Nothing comes of pixels without channels, of which an empty tensor can have any number.
  if (s.input_channels == 0) s.y.input = s.x.input = 0;
  return s;
}

// Products per output element, roughly: windows overlap window / stride times along each axis.
double transpose_conv_products_per_output(const ConvShape& s) {
  const auto overlap = [](const ConvAxis& axis) {
    return static_cast<double>(std::min((axis.window + axis.stride - 1) / axis.stride, axis.input));
  };
  return overlap(s.y) * overlap(s.x) * static_cast<double>(s.input_channels);
}

// Row tap * output_channels + o holds weights[o, tap, :].
PackedRows pack_by_tap(const Tensor& weights, const ConvShape& s, std::int32_t zero_point) {
  if (weights.elements() == 0) return PackedRows(0, s.input_channels);
  PackedRows packed(s.taps() * s.output_channels, s.input_channels);
  for (std::int64_t o = 0; o < s.output_channels; ++o) {
    for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
      widen_elements(weights, (o * s.taps() + tap) * s.input_channels, s.input_channels, zero_point,
                     packed.row(tap * s.output_channels + o));
    }
  }
  return packed;
}

// Whether the phases' packed weights stay within a small multiple of the weights, and their number is small: strides
// are a foreign file's, and may be anything.
bool is_worth_phases(const ConvShape& s) {
  constexpr std::int64_t kMostPhases = 64;
  return s.y.stride <= kMostPhases && s.x.stride <= kMostPhases && s.y.stride * s.x.stride <= 4 * s.taps() &&
         s.y.stride * s.x.stride <= kMostPhases * 4;
}

template <typename T>
Result<Kernel> transpose_conv_quantized_kernel(const PrepareContext& ctx, const ConvShape& s,
                                               const IntScaling& scaling) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(ctx.input(kInput), "input"));
  REEF_ASSIGN_OR_RETURN(const kernels::Requantizer requantizer,
                        make_requantizer(ctx, scaling.rounding, scaling.factors));
  if constexpr (sizeof(T) == 1) {
    if (s.input_channels > 0 && is_worth_phases(s) && kernels::has_byte_panels() &&
        kernels::suits_byte_scaling(requantizer)) {
      return transpose_bytes_kernel<T>(ctx, s, kTransposeConvOperands, scaling, in.zero_point);
    }
  }
  const FromTensor<PackedRows> packed(ctx.input(kWeights),
                                      [s, zero_point = scaling.weights_zero_point](const Tensor& weights) {
                                        return pack_by_tap(weights, s, zero_point);
                                      });
  const std::int64_t run = sizeof(T) == 1 ? kernels::kRunOf8BitProducts : kernels::kRunOf16By8BitProducts;
  return Kernel([=, zero_point = in.zero_point](RunContext& run_ctx) {
    const auto weights = packed.get(run_ctx.input(kWeights));
    const std::vector<std::int64_t> bias = bias_values(run_ctx, kBias);
    const T* input = run_ctx.input(kInput).values<T>().data();
    const auto sink = requantizing_sink<T>(run_ctx, requantizer, bias, s.output_channels);
    const std::int64_t pixels = s.y.input * s.x.input;
    PackedRows image(pixels, s.input_channels);
    for (std::int64_t batch = 0; batch < s.batches; ++batch) {
      for (std::int64_t i = 0; i < pixels; ++i) {
        kernels::widen(input + (batch * pixels + i) * s.input_channels, s.input_channels, zero_point, image.row(i));
      }
      for_each_output_block(
          run_ctx, s, s.y.output, transpose_conv_products_per_output(s), 1, [&](const OutputBlock& part) {
            const std::int64_t first = part.channel_begin, count = part.channel_end - first;
            std::vector<std::int64_t> sums(static_cast<std::size_t>(count));
            for (std::int64_t x = part.x_begin; x < part.x_end; ++x) {
              std::fill(sums.begin(), sums.end(), std::int64_t{0});
              kernels::for_each_source(s, part.row, x, [&](std::int64_t pixel, std::int64_t tap) {
                kernels::add_row_products(image.row(pixel), 0, 1, weights->row(tap * s.output_channels + first),
                                          weights->stride, count, weights->stride, run, sums.data(), 0);
              });
              sink((batch * s.y.output + part.row) * s.x.output + x, first, sums.data(), count);
            }
          });
    }
    return ok_status();
  });
}

// Weights that are not finite are added one by one: what lies outside of the image must not be multiplied by them.
struct FloatWeights {
  FloatPhaseWeights phases;
  PackedColumns columns;  // empty unless needed
};

Result<Kernel> transpose_conv_prepare_float(PrepareContext& ctx, const ConvShape& s) {
  REEF_RETURN_IF_ERROR(optional_bias(ctx, kBias, {DataType::kFloat32}, s.output_channels).status());
  REEF_ASSIGN_OR_RETURN(const FloatRange range, float_activation_range(ctx.attributes()));
  const auto pack_columns = [s](const Tensor& weights) {
    if (weights.elements() == 0) return PackedColumns(0, s.output_channels, s.input_channels);
    PackedColumns result(s.taps(), s.output_channels, s.input_channels);
    const float* from = weights.values<float>().data();
    for (std::int64_t o = 0; o < s.output_channels; ++o) {
      for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
        for (std::int64_t c = 0; c < s.input_channels; ++c) result.at(tap, o, c) = *from++;
      }
    }
    return result;
  };
  const bool has_phases = s.input_channels > 0 && is_worth_phases(s);
  const FromTensor<FloatWeights> packed(ctx.input(kWeights), [=](const Tensor& weights) {
    FloatWeights result;
    if (has_phases) result.phases = pack_float_phases(weights.values<float>().data(), s);
    if (!has_phases || !result.phases.finite) result.columns = pack_columns(weights);
    return result;
  });
  return Kernel([=](RunContext& run_ctx) {
    const auto weights = packed.get(run_ctx.input(kWeights));
    const float* input = run_ctx.input(kInput).values<float>().data();
    float* output = run_ctx.output(0).mutable_values<float>().data();
    const kernels::FloatOutput finish = float_output(run_ctx, kBias, range);
    if (has_phases && weights->phases.finite) {
      run_float_phases(run_ctx, s, input, weights->phases, finish, output);
      return ok_status();
    }
    for_each_output_block(run_ctx, s, s.output_rows(), transpose_conv_products_per_output(s), kernels::kColumnBlock,
                          [&](const OutputBlock& part) {
                            kernels::transpose_convolve_float(s, input, weights->columns, finish, part, output);
                          });
    return ok_status();
  });
}

// Weights as [tap][input channel][output channel], so that hybrid sums run across output channels.
std::vector<std::int16_t> pack_by_channel(const Tensor& weights, const ConvShape& s) {
  if (weights.elements() == 0) return {};
  const PackedRows rows = pack_by_tap(weights, s, 0);
  std::vector<std::int16_t> packed;
  packed.reserve(static_cast<std::size_t>(weights.elements()));
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    for (std::int64_t c = 0; c < s.input_channels; ++c) {
      for (std::int64_t o = 0; o < s.output_channels; ++o) packed.push_back(rows.row(tap * s.output_channels + o)[c]);
    }
  }
  return packed;
}

// sums[o] += x * w[o] * channel_scales[o] * scale, rounding after every step.
void add_hybrid_products(std::int32_t x, const std::int16_t* w, const float* channel_scales, float scale,
                         std::vector<float>& sums) {
  for (std::size_t o = 0; o < sums.size(); ++o) {
    sums[o] += static_cast<float>(x * w[o]) * channel_scales[o] * scale;
  }
}

Result<Kernel> transpose_conv_prepare_hybrid(PrepareContext& ctx, const ConvShape& s) {
  const Tensor& weights = ctx.input(kWeights);
  REEF_ASSIGN_OR_RETURN(const HybridOutput hybrid,
                        hybrid_output(ctx, kTransposeConvOperands, s.output_channels, {DataType::kInt8}));
  const kernels::FloatQuantizer quantizer = float_quantizer(ctx, true);
  const FromTensor<std::vector<std::int16_t>> packed(weights,
                                                     [s](const Tensor& tensor) { return pack_by_channel(tensor, s); });
  return Kernel([=](RunContext& run_ctx) {
    const auto w = packed.get(run_ctx.input(kWeights));
    const QuantizedRows quantized =
        quantize_rows(run_ctx.input(kInput).values<float>().data(), s.batches, s.input_batch_size(), quantizer);
    float* output = run_ctx.output(0).mutable_values<float>().data();
    const kernels::FloatOutput finish = float_output(run_ctx, kBias, hybrid.range);
    for_each_output_block(
        run_ctx, s, s.output_rows(), 4 * transpose_conv_products_per_output(s), 1, [&](const OutputBlock& part) {
          const std::int64_t first = part.channel_begin, batch = part.row / s.y.output;
          const std::int8_t* image = quantized.values.data() + batch * s.input_batch_size();
          const auto b = static_cast<std::size_t>(batch);
          std::vector<float> sums(static_cast<std::size_t>(part.channel_end - first));
          for (std::int64_t x = part.x_begin; x < part.x_end; ++x) {
            std::fill(sums.begin(), sums.end(), 0.0f);
            kernels::for_each_source(s, part.row % s.y.output, x, [&](std::int64_t pixel, std::int64_t tap) {
              for (std::int64_t c = 0; c < s.input_channels; ++c) {
                add_hybrid_products(image[pixel * s.input_channels + c] - quantized.zero_points[b],
                                    w->data() + (tap * s.input_channels + c) * s.output_channels + first,
                                    hybrid.channel_scales.data() + first, quantized.scales[b], sums);
              }
            });
            float* to = output + (part.row * s.x.output + x) * s.output_channels;
            for (std::int64_t o = first; o < part.channel_end; ++o) {
              to[o] = finish(sums[at(o - first)], o);
            }
          }
        });
    return ok_status();
  });
}

Result<Kernel> transpose_conv_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const ConvShape s, transpose_conv_shape_of(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(kInput), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_plain_storage(ctx.input(kWeights)));
  if (ctx.output(0).elements() == 0) return Kernel([](RunContext&) { return ok_status(); });
  switch (ctx.input(kInput).type) {
    case DataType::kFloat32:
      return ctx.input(kWeights).type == DataType::kFloat32 ? transpose_conv_prepare_float(ctx, s)
                                                            : transpose_conv_prepare_hybrid(ctx, s);
    case DataType::kUInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling, uint8_scaling(ctx, kTransposeConvOperands, s.output_channels));
      return transpose_conv_quantized_kernel<std::uint8_t>(ctx, s, scaling);
    }
    case DataType::kInt8: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling,
                            int8_scaling(ctx, kTransposeConvOperands, s.output_channels, {DataType::kInt8}));
      return transpose_conv_quantized_kernel<std::int8_t>(ctx, s, scaling);
    }
    case DataType::kInt16: {
      REEF_ASSIGN_OR_RETURN(const IntScaling scaling,
                            int16_scaling(ctx, kTransposeConvOperands, s.output_channels, {DataType::kInt8},
                                          {DataType::kInt32, DataType::kInt64}));
      return transpose_conv_quantized_kernel<std::int16_t>(ctx, s, scaling);
    }
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef transpose_conv_op = define(
    {.name = name_of(Op::TRANSPOSE_CONV),
     .summary = "Transposed 2-D convolution, which enlarges images.",
     .inputs = {3, 4},
     .attributes = kTransposeConvAttributes,
     .types = "float32; uint8; int8 (weights per tensor or per channel); int16 (weights int8, bias int32 or int64); "
              "hybrid: float32 with int8 weights",
     .traits = trait_set({Trait::kPerImage}),
     .infer = transpose_conv_infer,
     .prepare = transpose_conv_prepare,
     .chip = {.first_runtime = 12,
              .newest_version = 3,
              .rules = {},
              .parameters = input_set({0, 1, 3}),
              .evidence = "Version 4 is newer than Google's compiler (edgetpu#845). Coral's table says runtime "
                          "13, but the compilers it means write 12 into their files.",
              .if_newer = "Version 4 is for fused activations, and one layer with one makes all TRANSPOSE_CONV of "
                          "the file that version. Put the activation behind it as an op of its own.",
              .newer_rewrite = "fused-activation"}});

}  // namespace reef::ops
