// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

#if defined(__x86_64__)
#define REEF_BODY "kernels/conv/depthwise_bytes_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"

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
  avx512::depthwise_any({columns, lines, row_lines, s.x.stride, s.x.dilation, s.x.window, weights.row_groups, values,
                         weights.block_summands[b], kSigned, &scaling, slot, channel, channels, to, s.output_channels,
                         row_stride, s.y.window - 4 * (weights.row_groups - 1)},
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

#if defined(__x86_64__)
// AVX2, SSE4: rows of outputs, some blocks of their channels. columns: of the first row's first line. Works: some parts
// of a target; depthwise_rows: its function for them.
template <typename Works, typename T>
void depthwise_parts(const ConvShape& s, const DepthwiseWeights& weights, const ByteScaling& scaling,
                     std::int64_t block_begin, std::int64_t block_end, const std::uint8_t* const* columns,
                     std::int64_t rows, T* output, void (*depthwise_rows)(const Works&, std::int64_t, std::int64_t)) {
  const std::int64_t span = span_of(s), parts = weights.parts();
  Works works;
  for (std::int64_t i = block_begin * parts; i < block_end * parts; ++i) {
    const std::int64_t block = i / parts, part = i % parts;
    const std::int64_t channel = block_channel(s, block) + weights.part_channel(part);
    works.parts[works.count++] = {.columns = columns,
                                  .lines = s.y.dilation * span,
                                  .row_lines = s.y.stride * span,
                                  .stride = s.x.stride,
                                  .dilation = s.x.dilation,
                                  .window = s.x.window,
                                  .window_rows = s.y.window,
                                  .row_groups = weights.row_groups,
                                  .weights = weights.values.data() +
                                             weights.block_begin[static_cast<std::size_t>(block)] +
                                             part * s.x.window * weights.row_groups * weights.tap_bytes(),
                                  .is_signed = std::is_signed_v<T>,
                                  .scaling = &scaling,
                                  .slot = block * kDepthwiseBlock + part * weights.part(),
                                  .channel = channel,
                                  .channels = std::min(weights.block_channels, weights.part()),
                                  .output = reinterpret_cast<std::uint8_t*>(output + channel),
                                  .output_stride = s.output_channels,
                                  .output_row_stride = s.x.output * s.output_channels};
    if (works.count == std::ssize(works.parts) || i + 1 == block_end * parts) {
      depthwise_rows(works, rows, s.x.output);
      works.count = 0;
    }
  }
}
#endif

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
  note_kernel(weights.is_wide   ? SimdTarget::kAvx512
              : weights.is_sse4 ? SimdTarget::kSse4
              : weights.is_neon ? SimdTarget::kNeon
                                : SimdTarget::kAvx2);
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
#if defined(__x86_64__)
    const auto run_parts = [&](auto* depthwise_rows) {
      depthwise_parts(s, weights, scaling, block_begin, block_end, columns.data(), end - row, to, depthwise_rows);
    };
    if (!weights.is_wide) {
      weights.is_sse4 ? run_parts(&sse4::depthwise_rows) : run_parts(&avx2::depthwise_rows);
      continue;
    }
#endif
    for (std::int64_t block = block_begin; block < block_end; ++block)
      depthwise_block(s, weights, scaling, block, columns.data(), end - row, to);
  }
}

#define REEF_DEPTHWISE_BYTES(T)                                                                       \
  template void depthwise_bytes<T>(const ConvShape&, const T*, std::int32_t, const DepthwiseWeights&, \
                                   const ByteScaling&, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);
REEF_DEPTHWISE_BYTES(std::int8_t)
REEF_DEPTHWISE_BYTES(std::uint8_t)
#undef REEF_DEPTHWISE_BYTES

}  // namespace reef::kernels
