// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "numeric/fixed_point.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace reef::kernels {

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/conv/depthwise_bytes_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512_vbmi.h"
namespace avx512 {
namespace {
constexpr int kLanes = 8;
#include "kernels/conv/depthwise_3x3_body.h"
#include "kernels/conv/depthwise_wide_body.h"
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#elif defined(__aarch64__)
#include "kernels/simd/begin_neon.h"
namespace neon {
namespace {
#include "kernels/conv/depthwise_neon_body.h"
}  // namespace
}  // namespace neon
#include "kernels/simd/end_target.h"
#endif

namespace {

std::int64_t blocks_of(const ConvShape& s) { return (s.output_channels + kDepthwiseBlock - 1) / kDepthwiseBlock; }

// Columns that the windows of a row of outputs touch.
std::int64_t span_of(const ConvShape& s) { return (s.x.output - 1) * s.x.stride + (s.x.window - 1) * s.x.dilation + 1; }

// Where each column of `rows` lines from `first_y` on lies: [line][column]. Everything outside of the image reads
// `outside`.
template <typename T>
void find_columns(const ConvShape& s, const T* image, std::int64_t first_y, std::int64_t rows, const T* outside,
                  const std::uint8_t** table) {
  const std::int64_t first = s.x.origin(0), span = span_of(s);
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, span);
  const std::int64_t end = std::clamp<std::int64_t>(s.x.input - first, begin, span);
  for (std::int64_t y = first_y; y < first_y + rows; ++y, table += span) {
    std::fill(table, table + span, reinterpret_cast<const std::uint8_t*>(outside));
    if (y < 0 || y >= s.y.input) continue;
    const auto* line = reinterpret_cast<const std::uint8_t*>(image + (y * s.x.input + first) * s.input_channels);
    const std::int64_t step = s.input_channels;
    for (std::int64_t j = begin; j < end; ++j) table[j] = line + j * step;
  }
}

}  // namespace

bool has_depthwise_bytes(const ConvShape& s) {
  constexpr std::int64_t kLongest = 1 << 16;  // columns that a row's windows may span
  return active_target() != SimdTarget::kBaseline && s.output_channels == s.input_channels && span_of(s) <= kLongest &&
         s.y.window <= 64 && s.x.window <= 64;
}

namespace {

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

void pack_avx2(const ConvShape& s, const std::int16_t* weights, const DepthwiseWeights& packed,
               std::int64_t first_channel, std::int8_t* to) {
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    const std::int64_t row = tap / s.x.window, kx = tap % s.x.window;
    for (std::int64_t slot = 0; slot < kDepthwiseBlock; ++slot) {
      const std::int64_t in_block = packed.channel_in_block(slot), half = slot / 16;
      if (in_block >= packed.block_channels) continue;
      const std::int64_t at = (half * s.x.window + kx) * packed.row_groups + row / 4;
      std::memcpy(to + at * 128 + row % 4 / 2 * 64 + slot % 16 * 4 + row % 2 * 2,
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
    const std::int64_t group_bytes = result.is_wide ? result.output_rows * summands * 128 : result.halves() * 128;
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
      pack_avx2(s, weights, result, block_channel(s, block), to);
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

namespace {

// 64-byte vectors, and ARM: rows of outputs, a block of their channels. columns: of the first row's first line.
template <typename T>
void depthwise_block([[maybe_unused]] const ConvShape& s, [[maybe_unused]] const DepthwiseWeights& weights,
                     [[maybe_unused]] const ByteScaling& scaling, [[maybe_unused]] std::int64_t block,
                     [[maybe_unused]] const std::uint8_t* const* columns, [[maybe_unused]] std::int64_t rows,
                     [[maybe_unused]] T* output) {
#if defined(__x86_64__)
  constexpr bool kSigned = std::is_signed_v<T>;
  const auto b = static_cast<std::size_t>(block);
  const std::int64_t channel = block_channel(s, block), slot = block * kDepthwiseBlock, span = span_of(s);
  const std::int64_t channels = std::min(kDepthwiseBlock, s.output_channels - channel);
  const std::int8_t* values = weights.values.data() + weights.block_begin[b];
  auto* to = reinterpret_cast<std::uint8_t*>(output + channel);
  const std::int64_t lines = s.y.dilation * span;  // from a row of the window to the next
  const std::int64_t row_lines = s.y.stride * span, row_stride = s.x.output * s.output_channels;
  avx512::depthwise_any(
      {columns, lines, row_lines, s.x.stride, s.x.dilation, s.x.window, weights.row_groups, values,
       weights.block_summands[b], kSigned, &scaling, slot, channel, channels, to, s.output_channels, row_stride},
      rows, s.x.output);
#elif defined(__aarch64__)
  const std::int64_t span = span_of(s), first = block_channel(s, block);
  const std::int64_t done = block * kDepthwiseBlock - first;  // channels that the block before does
  for (std::int64_t half = 0; half < 2; ++half) {
    const std::int64_t begin = half == 0 ? 0 : weights.second_half;
    if (begin + kDepthwiseHalf <= done || (half == 1 && begin == 0)) continue;
    const std::int64_t channels = std::min(kDepthwiseHalf, s.output_channels - first - begin);
    const std::int8_t* values = weights.values.data() + weights.block_begin[static_cast<std::size_t>(block)] +
                                half * s.taps() * kDepthwiseHalf * 2;
    for (std::int64_t row = 0; row < rows; ++row) {
      auto* to = reinterpret_cast<std::uint8_t*>(output + row * s.x.output * s.output_channels + first + begin);
      neon::depthwise_row({columns + row * s.y.stride * span,
                           s.y.dilation * span,
                           s.x.stride,
                           s.x.dilation,
                           s.x.window,
                           s.y.window,
                           values,
                           {&scaling, block * kDepthwiseBlock + half * kDepthwiseHalf, first + begin, channels, to,
                            s.output_channels, std::is_signed_v<T>}},
                          s.x.output);
    }
  }
#endif
}

// AVX2: rows of outputs, some blocks of their channels. columns: of the first row's first line.
template <typename T>
void depthwise_halves([[maybe_unused]] const ConvShape& s, [[maybe_unused]] const DepthwiseWeights& weights,
                      [[maybe_unused]] const ByteScaling& scaling, [[maybe_unused]] std::int64_t block_begin,
                      [[maybe_unused]] std::int64_t block_end, [[maybe_unused]] const std::uint8_t* const* columns,
                      [[maybe_unused]] std::int64_t rows, [[maybe_unused]] T* output) {
#if defined(__x86_64__)
  const std::int64_t span = span_of(s), halves = weights.halves();
  avx2::Works works;
  for (std::int64_t i = block_begin * halves; i < block_end * halves; ++i) {
    const std::int64_t block = i / halves, half = i % halves;
    const std::int64_t channel = block_channel(s, block) + weights.half_channel(half);
    works.halves[works.count++] = {.columns = columns,
                                   .lines = s.y.dilation * span,
                                   .row_lines = s.y.stride * span,
                                   .stride = s.x.stride,
                                   .dilation = s.x.dilation,
                                   .window = s.x.window,
                                   .window_rows = s.y.window,
                                   .row_groups = weights.row_groups,
                                   .weights = weights.values.data() +
                                              weights.block_begin[static_cast<std::size_t>(block)] +
                                              half * s.x.window * weights.row_groups * 128,
                                   .is_signed = std::is_signed_v<T>,
                                   .scaling = &scaling,
                                   .slot = block * kDepthwiseBlock + half * 16,
                                   .channel = channel,
                                   .channels = std::min<std::int64_t>(weights.block_channels, 16),
                                   .output = reinterpret_cast<std::uint8_t*>(output + channel),
                                   .output_stride = s.output_channels,
                                   .output_row_stride = s.x.output * s.output_channels};
    if (works.count == avx2::kMostWorks || i + 1 == block_end * halves) {
      avx2::depthwise_rows(works, rows, s.x.output);
      works.count = 0;
    }
  }
#endif
}

}  // namespace

namespace {

#if defined(__x86_64__)
// Every step-th coordinate of an axis, from `phase` on, as outputs; and the inputs that their windows touch, which are
// `step` apart too. A dilated convolution is such convolutions side by side, each without dilation.
struct AxisPhase {
  std::int64_t outputs, inputs, first_input, pad;

  AxisPhase(const ConvAxis& axis, std::int64_t phase, std::int64_t step) {
    outputs = (axis.output - phase + step - 1) / step;
    const std::int64_t origin = phase - axis.pad_before;  // of the first window; only dilated axes have step > 1
    pad = origin >= 0 ? 0 : (-origin + step - 1) / step;
    first_input = origin + pad * step;
    inputs = std::max<std::int64_t>((axis.input - first_input + step - 1) / step, 0);
  }
};
#endif

// Rows [row_begin, row_end), counted over all batches, of convolutions that depthwise_3x3_body.h does.
template <typename T>
void depthwise_3x3_rows([[maybe_unused]] const ConvShape& s, [[maybe_unused]] const T* input,
                        [[maybe_unused]] std::int32_t input_zero_point,
                        [[maybe_unused]] const DepthwiseWeights& weights, [[maybe_unused]] const ByteScaling& scaling,
                        [[maybe_unused]] std::int64_t row_begin, [[maybe_unused]] std::int64_t row_end,
                        [[maybe_unused]] std::int64_t block_begin, [[maybe_unused]] std::int64_t block_end,
                        [[maybe_unused]] T* output) {
#if defined(__x86_64__)
  const std::int64_t step = s.x.dilation;        // of both axes
  const std::int64_t rows_together = 16 * step;  // whose lines stay in the second cache while blocks pass by
  const std::vector<T> outside(static_cast<std::size_t>(s.x.input * s.input_channels),
                               static_cast<T>(input_zero_point));
  for (std::int64_t row = row_begin, end = 0; row < row_end; row = end) {
    const std::int64_t batch = row / s.y.output, first = row - batch * s.y.output;
    end = std::min({row + rows_together, row_end, (batch + 1) * s.y.output});
    for (std::int64_t i = block_begin * step * step; i < block_end * step * step; ++i) {
      const std::int64_t block = i / (step * step), phase_y = i / step % step, phase_x = i % step;
      if (phase_y >= s.y.output || phase_x >= s.x.output) continue;
      const AxisPhase y(s.y, phase_y, step), x(s.x, phase_x, step);
      const std::int64_t channel = block_channel(s, block), line = s.x.input * s.input_channels;
      const auto b = static_cast<std::size_t>(block);
      const T* image = input + batch * s.input_batch_size() + y.first_input * line + x.first_input * s.input_channels;
      T* to = output + ((batch * s.y.output + phase_y) * s.x.output + phase_x) * s.output_channels;
      const avx512::BlockWork work{.image = reinterpret_cast<const std::uint8_t*>(image + channel),
                                   .width = x.inputs,
                                   .height = y.inputs,
                                   .pixel_stride = s.input_channels * step,
                                   .line_stride = line * step,
                                   .row_stride = s.x.output * s.output_channels * step,
                                   .pad_left = x.pad,
                                   .pad_top = y.pad,
                                   .stride = s.x.stride,
                                   .outputs = x.outputs,
                                   .outside = reinterpret_cast<const std::uint8_t*>(outside.data()),
                                   .is_signed = std::is_signed_v<T>,
                                   .weights = weights.values.data() + weights.block_begin[b],
                                   .summands = weights.block_summands[b],
                                   .scaling = &scaling,
                                   .slot = block * kDepthwiseBlock,
                                   .channel = channel,
                                   .channels = std::min(kDepthwiseBlock, s.output_channels - channel),
                                   .output = reinterpret_cast<std::uint8_t*>(to + channel)};
      const auto rows_before = [&](std::int64_t until) {
        return std::max<std::int64_t>(until - phase_y + step - 1, 0) / step;
      };
      avx512::depthwise_3x3(work, rows_before(first), rows_before(end - batch * s.y.output));
    }
  }
#endif
}

}  // namespace

template <typename T>
void depthwise_bytes(const ConvShape& s, const T* input, std::int32_t input_zero_point, const DepthwiseWeights& weights,
                     const ByteScaling& scaling, std::int64_t row_begin, std::int64_t row_end, std::int64_t block_begin,
                     std::int64_t block_end, T* output) {
  if (weights.is_three_by_three) {
    return depthwise_3x3_rows(s, input, input_zero_point, weights, scaling, row_begin, row_end, block_begin, block_end,
                              output);
  }
  constexpr std::int64_t kTableEntries = 4096;
  // Windows are read in groups of four rows: those beyond the last have no weights.
  const std::int64_t window_lines = (4 * weights.row_groups - 1) * s.y.dilation + 1, span = span_of(s);
  const std::int64_t together = std::max<std::int64_t>((kTableEntries / span - window_lines) / s.y.stride + 1, 1);
  std::vector<const std::uint8_t*> columns;
  const std::vector<T> outside(static_cast<std::size_t>(s.input_channels), static_cast<T>(input_zero_point));
  for (std::int64_t row = row_begin, end = 0; row < row_end; row = end) {
    const std::int64_t batch = row / s.y.output;
    end = std::min({row + together, row_end, (batch + 1) * s.y.output});
    const std::int64_t lines = (end - row - 1) * s.y.stride + window_lines;
    columns.resize(static_cast<std::size_t>(lines * span));
    find_columns(s, input + batch * s.input_batch_size(), s.y.origin(row % s.y.output), lines, outside.data(),
                 columns.data());
    T* const to = output + row * s.x.output * s.output_channels;
    if (!weights.is_wide && !weights.is_neon) {
      depthwise_halves(s, weights, scaling, block_begin, block_end, columns.data(), end - row, to);
      continue;
    }
    for (std::int64_t block = block_begin; block < block_end; ++block)
      depthwise_block(s, weights, scaling, block, columns.data(), end - row, to);
  }
}

#define REEF_DEPTHWISE_BYTES(T)                                                                             \
  template ByteScaling depthwise_scaling<T>(const ConvShape&, const DepthwiseWeights&,                      \
                                            const std::shared_ptr<const Requantizer>&, const std::int64_t*, \
                                            std::int32_t);                                                  \
  template void depthwise_bytes<T>(const ConvShape&, const T*, std::int32_t, const DepthwiseWeights&,       \
                                   const ByteScaling&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);
REEF_DEPTHWISE_BYTES(std::int8_t)
REEF_DEPTHWISE_BYTES(std::uint8_t)
#undef REEF_DEPTHWISE_BYTES

}  // namespace reef::kernels
