// SPDX-License-Identifier: Apache-2.0
// Shared by CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED: sizes from attributes, checks of weights
// and bias with the scaling that follows from them, and the last step of each kind of kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "kernels/conv/conv_int.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/float_columns.h"
#include "kernels/simd/loops.h"
#include "ops/byte_panels.h"
#include "ops/weights.h"
#include "ops/window.h"

namespace reef::ops {

// Sizes along one axis. Unlike pools, convolutions may have empty outputs: a window that does not quite fit gives none.
Result<kernels::ConvAxis> conv_axis(std::int64_t input, std::int64_t window, std::int64_t stride, std::int64_t dilation,
                                    std::string_view padding);
// Both axes from the attributes; weights are [.., height, width, ..]. Channels are left to the caller.
Result<kernels::ConvShape> conv_geometry(const OpContext& ctx);

// Which inputs of an op are which, and the dimension of the weights that counts output channels.
struct ConvOperands {
  int input = 0, weights = 1, bias = 2;
  int weights_axis = 0;
};

// How integer sums become outputs.
struct IntScaling {
  kernels::Rounding rounding = kernels::Rounding::kFixedPoint32;
  std::vector<double> factors;  // one, or one per output channel
  std::int32_t weights_zero_point = 0;
};

// The scaling of fixed-point convolutions, after checking weights and bias; nothing else is left to check for them.
// uint8: one scale for all weights, which have a zero point.
Result<IntScaling> uint8_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels);
// int8: a scale per channel or one for all.
Result<IntScaling> int8_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                std::initializer_list<DataType> weight_types);
// int16: the same; a 32-bit bias, where `bias_types` allow it, means that sums wrap at 32 bits.
Result<IntScaling> int16_scaling(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                 std::initializer_list<DataType> weight_types,
                                 std::initializer_list<DataType> bias_types);
// Whether sums of int16 activations wrap at 32 bits: so says a 32-bit bias or, without one, an attribute.
bool sums_wrap(const OpContext& ctx, const Tensor* bias);

// A float bias and the fused activation, for this run.
inline kernels::FloatOutput float_output(const OpContext& ctx, int bias_index, FloatRange range) {
  const bool may_fuse = ctx.environment() != nullptr && ctx.environment()->float_sums() == FloatSums::kFused;
  return {float_bias(ctx, bias_index), range.min, range.max, may_fuse};
}

// sink(pixel, first_channel, sums, count) that requantizes into ctx's output.
template <typename Out>
auto requantizing_sink(RunContext& ctx, const kernels::Requantizer& requantizer, const std::vector<std::int64_t>& bias,
                       std::int64_t channels) {
  Out* output = ctx.output(0).mutable_values<Out>().data();
  const std::int64_t* bias_data = data_or_null(bias);
  return [=, &requantizer](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t count) {
    kernels::in_vectors([&] {
      kernels::requantize(requantizer, sums, bias_data, channel, count, output + pixel * channels + channel);
    });
  };
}

// Sums of a hybrid op back to floats: one scale per batch of inputs, one per output channel.
struct HybridOutput {
  std::vector<float> channel_scales;
  FloatRange range;
  bool scales_first = true;  // sum * (channel scale * batch scale) rather than (sum * channel scale) * batch scale
};

// The scales and activation of a hybrid op, after checking weights and bias.
Result<HybridOutput> hybrid_output(const OpContext& ctx, const ConvOperands& at, std::int64_t channels,
                                   std::initializer_list<DataType> weight_types);

// The same for hybrid ops. `pixels`: output pixels per batch.
inline auto hybrid_sink(RunContext& ctx, const HybridOutput& hybrid, const std::vector<float>& batch_scales,
                        int bias_index, std::int64_t pixels, std::int64_t channels) {
  float* output = ctx.output(0).mutable_values<float>().data();
  const kernels::FloatOutput finish = float_output(ctx, bias_index, hybrid.range);
  return [=, &hybrid, &batch_scales](std::int64_t pixel, std::int64_t first, const std::int64_t* sums,
                                     std::int64_t count) {
    const float batch_scale = batch_scales[reef::at(pixel / pixels)];
    const float* scales = hybrid.channel_scales.data() + first;
    float* to = output + pixel * channels + first;
    const bool scales_first = hybrid.scales_first;
    kernels::in_vectors([&] {
      REEF_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) {
        const auto sum = static_cast<float>(static_cast<std::int32_t>(sums[i]));
        const float value = scales_first ? sum * (scales[i] * batch_scale) : sum * scales[i] * batch_scale;
        to[i] = finish(value, first + i);
      }
    });
  };
}

// How the output of a convolution is cut into blocks: `columns` pixels of a row, `channels` channels.
struct BlockSize {
  std::int64_t columns = 1, channels = 1;
};
// Whole rows where these are short enough for time limits to be kept, which are looked at between blocks. `products`:
// per output element. Channels are cut at multiples of `channel_step`.
BlockSize output_block_size(const kernels::ConvShape& s, double products, std::int64_t channel_step);

// body(OutputBlock) for all of output rows [0, rows), on all threads.
template <typename Body>
void for_each_output_block(const RunContext& ctx, const kernels::ConvShape& s, std::int64_t rows, double products,
                           std::int64_t channel_step, const Body& body) {
  if (s.x.output == 0 || s.output_channels == 0) return;
  const BlockSize size = output_block_size(s, products, channel_step);
  const std::int64_t across = (s.x.output + size.columns - 1) / size.columns;
  const std::int64_t deep = (s.output_channels + size.channels - 1) / size.channels;
  const auto products_each = static_cast<std::int64_t>(std::min(products, 1e18));
  ctx.parallel_for(rows * across * deep, grain_for({size.columns, size.channels, products_each}),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const std::int64_t x = i / deep % across * size.columns, channel = i % deep * size.channels;
                       body(kernels::OutputBlock{i / deep / across, x, std::min(x + size.columns, s.x.output), channel,
                                                 std::min(channel + size.channels, s.output_channels)});
                     }
                   });
}

// Runs the integer kernel over the whole output. Channels are shared out too where pixels alone are few.
template <typename In, typename Sink>
void run_convolution(RunContext& ctx, const kernels::ConvShape& s, const In* input,
                     std::span<const std::int32_t> zero_points, const kernels::PackedRows& weights, std::int64_t run,
                     const Sink& sink) {
  constexpr std::int64_t kFewTiles = 16, kChannelsEach = 64;
  if (s.output_pixels() == 0) return;
  const std::int64_t tile = kernels::pixel_tile(weights.stride);
  const std::int64_t tiles = (s.output_pixels() + tile - 1) / tile;
  const std::int64_t width = tiles < kFewTiles && s.groups == 1 ? kChannelsEach : s.output_channels;
  const std::int64_t slices = (s.output_channels + width - 1) / width;
  ctx.parallel_for(tiles * slices, grain_for({tile, width, s.depth()}), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t pixel = i / slices * tile, channel = i % slices * width;
      kernels::convolve(s, input, zero_points, weights, run, pixel, std::min(pixel + tile, s.output_pixels()), channel,
                        std::min(channel + width, s.output_channels), sink);
    }
  });
}

// Weights of a hybrid op as rows. TFLite reads uint8 weights as int8 here.
FromTensor<kernels::PackedRows> hybrid_rows(const Tensor& weights, std::int64_t depth);

// The integer kernel of ops whose weights are rows of `s.depth()`: CONV_2D and FULLY_CONNECTED.
template <typename In, typename Out>
Result<Kernel> dense_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ConvOperands& at,
                            const IntScaling& scaling) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(ctx.input(at.input), "input"));
  REEF_ASSIGN_OR_RETURN(const kernels::Requantizer requantizer,
                        make_requantizer(ctx, scaling.rounding, scaling.factors));
  if constexpr (sizeof(In) == 1 && std::is_same_v<In, Out>) {
    if (kernels::has_byte_panels() && kernels::suits_byte_scaling(requantizer)) {
      return byte_panels_kernel<In>(ctx, s, {at.input, at.weights, at.bias, in.zero_point, scaling.weights_zero_point},
                                    requantizer);
    }
  }
  const FromTensor<kernels::PackedRows> packed(
      ctx.input(at.weights), [depth = s.depth(), zero_point = scaling.weights_zero_point](const Tensor& weights) {
        return pack_rows(weights, depth, zero_point);
      });
  const std::int64_t run = sizeof(In) == 1                                  ? kernels::kRunOf8BitProducts
                           : ctx.input(at.weights).type == DataType::kInt16 ? kernels::kRunOf16BitProducts
                                                                            : kernels::kRunOf16By8BitProducts;
  return Kernel([=, zero_point = in.zero_point](RunContext& run_ctx) {
    const auto weights = packed.get(run_ctx.input(at.weights));
    const std::vector<std::int64_t> bias = bias_values(run_ctx, at.bias);
    run_convolution(run_ctx, s, run_ctx.input(at.input).values<In>().data(), {&zero_point, 1}, *weights, run,
                    requantizing_sink<Out>(run_ctx, requantizer, bias, s.output_channels));
    return ok_status();
  });
}

}  // namespace reef::ops
