// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "numeric/fixed_point.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reef::kernels {

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#define REEF_VNNI 0
#include "kernels/conv/depthwise_bytes_body.h"
#undef REEF_VNNI
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#define REEF_VNNI 1
#include "kernels/conv/depthwise_bytes_body.h"
#undef REEF_VNNI
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#endif

namespace {

std::int64_t blocks_of(const ConvShape& s) { return (s.output_channels + kDepthwiseBlock - 1) / kDepthwiseBlock; }

// Where the rows of each column lie that windows of one output row touch: [column][row of the window], padded to groups
// of 4 rows by repeating the last. Everything outside of the image reads `outside`.
template <typename T>
void find_columns(const ConvShape& s, const T* image, std::int64_t out_y, const T* outside, std::int64_t column_rows,
                  std::vector<const std::uint8_t*>& columns) {
  const std::int64_t first = s.x.origin(0), count = static_cast<std::int64_t>(columns.size()) / column_rows;
  for (std::int64_t r = 0; r < column_rows; ++r) {
    const std::int64_t in_y = s.y.origin(out_y) + std::min(r, s.y.window - 1) * s.y.dilation;
    const bool is_in = in_y >= 0 && in_y < s.y.input;
    const T* line = image + in_y * s.x.input * s.input_channels;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t in_x = first + j;
      const T* at = is_in && in_x >= 0 && in_x < s.x.input ? line + in_x * s.input_channels : outside;
      columns[static_cast<std::size_t>(j * column_rows + r)] = reinterpret_cast<const std::uint8_t*>(at);
    }
  }
}

}  // namespace

bool has_depthwise_bytes(const ConvShape& s) {
  constexpr std::int64_t kLongest = 1 << 16;  // columns that a row's windows may span
  const std::int64_t span = (s.x.output - 1) * s.x.stride + (s.x.window - 1) * s.x.dilation + 1;
  return active_target() != SimdTarget::kBaseline && s.output_channels == s.input_channels && span <= kLongest &&
         s.y.window <= 64 && s.x.window <= 64;
}

DepthwiseWeights pack_depthwise(const ConvShape& s, const std::int16_t* weights) {
  DepthwiseWeights result;
  result.target = active_target();
  result.row_groups = (s.y.window + 3) / 4;
  const bool is_vnni = result.target == SimdTarget::kAvx512;
  const std::int64_t count = s.taps() * s.output_channels;
  for (std::int64_t i = 0; is_vnni && i < count; ++i) {
    const std::int64_t needed = weights[i] > 254 ? 3 : weights[i] < -128 || weights[i] > 127 ? 2 : 1;
    result.summands = std::max(result.summands, needed);
  }
  result.values.resize(static_cast<std::size_t>(blocks_of(s) * s.x.window * result.row_groups * result.group_bytes()));
  result.sums.resize(static_cast<std::size_t>(s.output_channels));
  result.magnitudes.resize(result.sums.size());
  std::int8_t* group = result.values.data();
  for (std::int64_t i = 0; i < blocks_of(s) * s.x.window * result.row_groups; ++i, group += result.group_bytes()) {
    const std::int64_t kx = i / result.row_groups % s.x.window, block = i / result.row_groups / s.x.window;
    for (std::int64_t at = 0; at < 4 * kDepthwiseBlock; ++at) {
      const std::int64_t lane = at / 4 % 8, vector = at / 32, row = at % 4;
      const std::int64_t channel = block_channel(s, block) + channel_in_block(vector, lane);
      const std::int64_t ky = i % result.row_groups * 4 + row;
      if (channel >= s.output_channels || ky >= s.y.window) continue;
      const std::int16_t w = weights[(ky * s.x.window + kx) * s.output_channels + channel];
      if (is_vnni) {
        int rest = w;
        for (std::int64_t part = 0; part < result.summands; ++part) {
          const int summand = std::clamp(rest, -128, 127);
          group[part * 4 * kDepthwiseBlock + at] = static_cast<std::int8_t>(summand);
          rest -= summand;
        }
      } else {
        std::memcpy(group + row / 2 * 128 + vector * 32 + lane * 4 + row % 2 * 2, &w, sizeof w);
      }
      if (channel < block * kDepthwiseBlock) continue;  // counted in the block before
      result.sums[static_cast<std::size_t>(channel)] += w;
      result.magnitudes[static_cast<std::size_t>(channel)] += static_cast<float>(std::abs(w));
    }
  }
  return result;
}

template <typename T>
ByteScaling depthwise_scaling(const ConvShape& s, const DepthwiseWeights& weights,
                              const std::shared_ptr<const Requantizer>& exact, const std::int64_t* bias,
                              std::int32_t input_zero_point) {
  const std::int32_t zero = input_zero_point + (std::is_signed_v<T> ? 128 : 0);
  std::vector<ChannelSums> sums;
  for (std::int64_t slot = 0; slot < blocks_of(s) * kDepthwiseBlock; ++slot) {
    const std::int64_t channel =
        block_channel(s, slot / kDepthwiseBlock) + channel_in_block(slot % kDepthwiseBlock / 8, slot % 8);
    if (channel >= s.output_channels) continue;
    const auto c = static_cast<std::size_t>(channel);
    const auto added = static_cast<std::int32_t>(bias != nullptr ? bias[channel] : 0);
    sums.push_back({numeric::wrapping_sub(added, numeric::wrapping_mul(zero, weights.sums[c])),
                    255.0 * static_cast<double>(weights.magnitudes[c]) + std::abs(static_cast<double>(added)), channel,
                    slot});
  }
  return make_byte_scaling(exact, sums, blocks_of(s) * kDepthwiseBlock);
}

template <typename T>
void depthwise_bytes(const ConvShape& s, const T* input, std::int32_t input_zero_point, const DepthwiseWeights& weights,
                     const ByteScaling& scaling, std::int64_t row_begin, std::int64_t row_end, std::int64_t block_begin,
                     std::int64_t block_end, T* output) {
  const std::int64_t column_rows = 4 * weights.row_groups;
  const std::int64_t span = (s.x.output - 1) * s.x.stride + (s.x.window - 1) * s.x.dilation + 1;
  std::vector<const std::uint8_t*> columns(static_cast<std::size_t>(span * column_rows));
  const std::vector<T> outside(static_cast<std::size_t>(s.input_channels), static_cast<T>(input_zero_point));
  const std::int64_t block_bytes = s.x.window * weights.row_groups * weights.group_bytes();
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* image = input + row / s.y.output * s.input_batch_size();
    find_columns(s, image, row % s.y.output, outside.data(), column_rows, columns);
    for (std::int64_t block = block_begin; block < block_end; ++block) {
      const std::int64_t channel = block_channel(s, block);
      [[maybe_unused]] const auto run = [&]<typename Work>(void (*depthwise_row)(const Work&, std::int64_t)) {
        const Work work{columns.data(),
                        column_rows,
                        s.x.stride,
                        s.x.dilation,
                        s.x.window,
                        s.y.window,
                        weights.values.data() + block * block_bytes,
                        weights.group_bytes(),
                        weights.row_groups,
                        weights.summands,
                        std::is_signed_v<T>,
                        &scaling,
                        block * kDepthwiseBlock,
                        channel,
                        std::min(kDepthwiseBlock, s.output_channels - channel),
                        reinterpret_cast<std::uint8_t*>(output + row * s.x.output * s.output_channels + channel),
                        s.output_channels};
        depthwise_row(work, s.x.output);
      };
#if defined(__x86_64__)
      if (weights.target == SimdTarget::kAvx512) {
        run(&avx512::depthwise_row);
      } else {
        run(&avx2::depthwise_row);
      }
#endif
    }
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
