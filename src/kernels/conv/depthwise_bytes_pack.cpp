// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h: weights packed for each target, and what their sums begin with.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/conv/depthwise_bytes.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

std::int64_t blocks_of(const ConvShape& s) { return (s.output_channels + kDepthwiseBlock - 1) / kDepthwiseBlock; }

bool has_wide_vectors() {
#if defined(__x86_64__)
  static const bool has_vbmi = __builtin_cpu_supports("avx512vbmi");
  return has_vbmi && active_target() == SimdTarget::kAvx512;
#else
  return false;
#endif
}

std::int64_t summands_of(std::int16_t weight) { return weight > 254 ? 3 : weight < -128 || weight > 127 ? 2 : 1; }

// weights: [position][channel]; one output row's part of a block. `down`: rows of the image above the window.
void pack_wide(const ConvShape& s, const std::int16_t* weights, std::int64_t row_groups, std::int64_t first_channel,
               std::int64_t down, std::int64_t summands, std::int8_t* to) {
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    const std::int64_t row = tap / s.x.window + down, kx = tap % s.x.window;
    for (std::int64_t i = 0; i < kDepthwiseBlock && first_channel + i < s.output_channels; ++i) {
      int rest = weights[tap * s.output_channels + first_channel + i];
      for (std::int64_t part = 0; part < summands; ++part) {
        const int summand = std::clamp(rest, -128, 127);
        to[((kx * row_groups + row / 4) * summands + part) * 4 * kDepthwiseBlock + i * 4 + row % 4] =
            static_cast<std::int8_t>(summand);
        rest -= summand;
      }
    }
  }
}

// AVX2, SSE4.
void pack_parts(const ConvShape& s, const std::int16_t* weights, const DepthwiseWeights& packed,
                std::int64_t first_channel, std::int8_t* to) {
  const std::int64_t part = packed.part(), tap_bytes = packed.tap_bytes();
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    const std::int64_t row = tap / s.x.window, kx = tap % s.x.window;
    for (std::int64_t slot = 0; slot < kDepthwiseBlock; ++slot) {
      const std::int64_t in_block = packed.channel_in_block(slot);
      if (in_block >= packed.block_channels) continue;
      const std::int64_t at = (slot / part * s.x.window + kx) * packed.row_groups + row / 4;
      std::memcpy(to + at * tap_bytes + row % 4 / 2 * (tap_bytes / 2) + slot % part * 4 + row % 2 * 2,
                  weights + tap * s.output_channels + first_channel + in_block, sizeof(std::int16_t));
    }
  }
}

void pack_neon(const ConvShape& s, const std::int16_t* weights, const DepthwiseWeights& packed,
               std::int64_t first_channel, std::int8_t* to) {
  for (std::int64_t i = 0; i < s.taps() * kDepthwiseBlock; ++i) {
    const std::int64_t tap = i / kDepthwiseBlock, slot = i % kDepthwiseBlock;
    const std::int64_t channel = first_channel + packed.channel_in_block(slot);
    if (channel >= s.output_channels) continue;
    const std::int64_t at = (slot / kDepthwiseHalf * s.taps() + tap) * kDepthwiseHalf + slot % kDepthwiseHalf;
    std::memcpy(to + at * 2, weights + tap * s.output_channels + channel, sizeof(std::int16_t));
  }
}

}  // namespace

DepthwiseWeights pack_depthwise(const ConvShape& s, const std::int16_t* weights) {
  DepthwiseWeights result;
  result.is_wide = has_wide_vectors();
  result.is_sse4 = active_target() == SimdTarget::kSse4;
#if defined(__aarch64__)
  result.is_neon = true;
  result.second_half = std::clamp<std::int64_t>(s.output_channels - kDepthwiseHalf, 0, kDepthwiseHalf);
#endif
  const bool is_dilated = s.x.dilation > 1 && s.y.dilation == s.x.dilation && s.x.stride == 1 && s.y.stride == 1;
  const bool is_simple = s.x.dilation == 1 && s.y.dilation == 1 && s.y.stride == s.x.stride && s.x.stride <= 2;
  result.is_three_by_three = result.is_wide && s.y.window == 3 && s.x.window == 3 && (is_simple || is_dilated);
  result.output_rows = result.is_three_by_three && s.x.stride == 1 ? 2 : 1;
  result.row_groups = (s.y.window + 3) / 4;
  result.block_channels = std::min(kDepthwiseBlock, s.output_channels);
  result.sums.resize(static_cast<std::size_t>(s.output_channels));
  result.magnitudes.resize(result.sums.size());
  for (std::int64_t i = 0; i < s.taps() * s.output_channels; ++i) {
    const auto channel = static_cast<std::size_t>(i % s.output_channels);
    result.sums[channel] += weights[i];
    result.magnitudes[channel] += static_cast<float>(std::abs(weights[i]));
  }
  std::int64_t size = 0;
  for (std::int64_t block = 0; block < blocks_of(s); ++block) {
    const std::int64_t first = block_channel(s, block), end = std::min(first + kDepthwiseBlock, s.output_channels);
    std::int64_t summands = 1;
    for (std::int64_t i = 0; result.is_wide && i < s.taps() * (end - first); ++i) {
      summands =
          std::max(summands, summands_of(weights[i / (end - first) * s.output_channels + first + i % (end - first)]));
    }
    result.block_begin.push_back(size);
    result.block_summands.push_back(summands);
    const std::int64_t group_bytes =
        result.is_wide ? result.output_rows * summands * 128 : result.parts() * result.tap_bytes();
    size += result.is_neon ? s.taps() * kDepthwiseBlock * 2 : s.x.window * result.row_groups * group_bytes;
  }
  result.values.resize(static_cast<std::size_t>(size));
  for (std::int64_t block = 0; block < blocks_of(s); ++block) {
    const auto b = static_cast<std::size_t>(block);
    std::int8_t* to = result.values.data() + result.block_begin[b];
    const std::int64_t summands = result.block_summands[b];
    if (result.is_neon) {
      pack_neon(s, weights, result, block_channel(s, block), to);
    } else if (!result.is_wide) {
      pack_parts(s, weights, result, block_channel(s, block), to);
    }
    for (std::int64_t row = 0; result.is_wide && row < result.output_rows; ++row) {
      pack_wide(s, weights, result.row_groups, block_channel(s, block), row, summands,
                to + row * s.x.window * result.row_groups * summands * 128);
    }
  }
  return result;
}

template <typename T>
ByteScaling depthwise_scaling(const ConvShape& s, const DepthwiseWeights& weights,
                              const std::shared_ptr<const Requantizer>& exact, const std::int64_t* bias,
                              std::int32_t input_zero_point) {
  const std::int32_t zero = input_zero_point + (weights.is_wide && std::is_signed_v<T> ? 128 : 0);
  std::vector<ChannelSums> sums;
  for (std::int64_t slot = 0; slot < blocks_of(s) * kDepthwiseBlock; ++slot) {
    const std::int64_t in_block = weights.channel_in_block(slot % kDepthwiseBlock);
    if (in_block >= weights.block_channels) continue;
    const std::int64_t channel = block_channel(s, slot / kDepthwiseBlock) + in_block;
    const auto c = static_cast<std::size_t>(channel);
    const auto added = static_cast<std::int32_t>(bias != nullptr ? bias[channel] : 0);
    sums.push_back({numeric::wrapping_sub(added, numeric::wrapping_mul(zero, weights.sums[c])),
                    255.0 * static_cast<double>(weights.magnitudes[c]) + std::abs(static_cast<double>(added)), channel,
                    slot});
  }
  return make_byte_scaling(exact, sums, blocks_of(s) * kDepthwiseBlock);
}

template ByteScaling depthwise_scaling<std::int8_t>(const ConvShape&, const DepthwiseWeights&,
                                                    const std::shared_ptr<const Requantizer>&, const std::int64_t*,
                                                    std::int32_t);
template ByteScaling depthwise_scaling<std::uint8_t>(const ConvShape&, const DepthwiseWeights&,
                                                     const std::shared_ptr<const Requantizer>&, const std::int64_t*,
                                                     std::int32_t);

}  // namespace reef::kernels
