// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/trace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace reef::kernels {
namespace {

std::int64_t channel_blocks(const PoolGeometry& g) { return (g.channels + kPoolChannelBlock - 1) / kPoolChannelBlock; }

// One unit: where its window begins in the input (first element, first channel of the block) and how far it reaches.
struct Window {
  std::int64_t input_offset = 0, output_offset = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t channels = 0;
  std::int64_t count() const { return rows * columns; }
};

Window window_of(const PoolGeometry& g, std::int64_t unit) {
  const std::int64_t blocks = channel_blocks(g);
  const std::int64_t channel = unit % blocks * kPoolChannelBlock;
  const std::int64_t pixel = unit / blocks;
  const std::int64_t out_x = pixel % g.output_width;
  const std::int64_t out_y = pixel / g.output_width % g.output_height;
  const std::int64_t batch = pixel / g.output_width / g.output_height;
  const std::int64_t top = out_y * g.stride_height - g.pad_top;
  const std::int64_t left = out_x * g.stride_width - g.pad_left;
  const std::int64_t y = std::max<std::int64_t>(top, 0);
  const std::int64_t x = std::max<std::int64_t>(left, 0);
  return {((batch * g.input_height + y) * g.input_width + x) * g.channels + channel, pixel * g.channels + channel,
          std::min(top + g.window_height, g.input_height) - y, std::min(left + g.window_width, g.input_width) - x,
          std::min(kPoolChannelBlock, g.channels - channel)};
}

#if defined(__x86_64__)
#include "kernels/simd/begin_sse4.h"
namespace sse4 {
constexpr std::int64_t kPoolBytes = 16;
#include "kernels/pool/pool_body.h"

#include "kernels/pool/average_bytes_body.h"
}  // namespace sse4
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx2.h"
namespace avx2 {
constexpr std::int64_t kPoolBytes = 32;
#include "kernels/pool/pool_body.h"

#include "kernels/pool/average_bytes_body.h"
}  // namespace avx2
#include "kernels/simd/end_target.h"
#elif defined(__aarch64__)
#include "kernels/simd/begin_neon.h"
namespace neon {
constexpr std::int64_t kPoolBytes = 16;
#include "kernels/pool/pool_body.h"

#include "kernels/pool/average_bytes_neon_body.h"
}  // namespace neon
#include "kernels/simd/end_target.h"
#endif

// What the active target does in vectors: a window of some channels at least. Null: nothing.
template <typename T>
struct WindowFunction {
  void (*function)(const PoolGeometry&, const Window&, const T*, PoolLimits<T>, T*) = nullptr;
  std::int64_t fewest_channels = 0;

  // Units [first_unit, last_unit), if there are enough channels: the last block of them must be wide enough, too.
  // Returns whether it has been done.
  bool operator()(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
                  std::int64_t last_unit) const {
    const std::int64_t last = g.channels % kPoolChannelBlock;
    if (function == nullptr || g.channels < fewest_channels || (last != 0 && last < fewest_channels)) return false;
    for (std::int64_t unit = first_unit; unit < last_unit; ++unit)
      function(g, window_of(g, unit), input, limits, output);
    return true;
  }
};

#define REEF_MAX_OF(target) \
  { &target::max_of_window<T>, target::kPoolBytes / static_cast<std::int64_t>(sizeof(T)) }
#define REEF_AVERAGE_OF(target) \
  { &target::average_of_window, sizeof(T) == 1 ? target::kAverageChannels : target::kPoolBytes / 4 }
#if defined(__x86_64__)
#define REEF_OF_TARGET(of)                         \
  if (runs_in(SimdTarget::kAvx2)) return of(avx2); \
  if (runs_in(SimdTarget::kSse4)) return of(sse4)
#elif defined(__aarch64__)
#define REEF_OF_TARGET(of) \
  if (runs_in(SimdTarget::kNeon)) return of(neon)
#else
#define REEF_OF_TARGET(of)
#endif

template <typename T>
WindowFunction<T> max_in_vectors() {
  if constexpr (sizeof(T) != 2) {
    REEF_OF_TARGET(REEF_MAX_OF);
  }
  return {};
}

template <typename T>
WindowFunction<T> average_in_vectors() {
  if constexpr (sizeof(T) != 2) {
    REEF_OF_TARGET(REEF_AVERAGE_OF);
  }
  return {};
}
#undef REEF_OF_TARGET
#undef REEF_AVERAGE_OF
#undef REEF_MAX_OF

// Folds the elements of a window into `accumulators`, one per channel.
template <typename T, typename Accumulator, typename Combine>
void fold(const PoolGeometry& g, const Window& window, const T* input, Accumulator* accumulators, Combine combine) {
  for (std::int64_t y = 0; y < window.rows; ++y) {
    const T* pixel = input + window.input_offset + y * g.input_width * g.channels;
    for (std::int64_t x = 0; x < window.columns; ++x, pixel += g.channels) {
      for (std::int64_t c = 0; c < window.channels; ++c) accumulators[c] = combine(accumulators[c], pixel[c]);
    }
  }
}

// Both comparisons are false for NaN, which so passes through, as in TFLite.
template <typename T>
T clamp_to(T value, PoolLimits<T> limits) {
  value = value < limits.low ? limits.low : value;
  return limits.high < value ? limits.high : value;
}

void average_pool_float(const PoolGeometry& g, const float* input, PoolLimits<float> limits, float* output,
                        std::int64_t first_unit, std::int64_t last_unit) {
  std::array<float, kPoolChannelBlock> sums;
  for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
    const Window window = window_of(g, unit);
    std::fill_n(sums.begin(), window.channels, 0.0F);
    fold(g, window, input, sums.data(), [](float sum, float x) { return sum + x; });
    // TFLite counts in a float, which stops growing at 2^24.
    const auto count = static_cast<float>(std::min<std::int64_t>(window.count(), 1 << 24));
    float* to = output + window.output_offset;
    for (std::int64_t c = 0; c < window.channels; ++c) {
      to[c] = clamp_to(sums[static_cast<std::size_t>(c)] / count, limits);
    }
  }
}

// Sum: int32_t where count times the largest magnitude fits, else int64_t.
template <typename T, typename Sum>
void average_pool_integer(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output,
                          std::int64_t first_unit, std::int64_t last_unit) {
  std::array<Sum, kPoolChannelBlock> sums;
  for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
    const Window window = window_of(g, unit);
    std::fill_n(sums.begin(), window.channels, Sum{0});
    fold(g, window, input, sums.data(), [](Sum sum, T x) { return static_cast<Sum>(sum + x); });
    const auto count = static_cast<Sum>(window.count());
    T* to = output + window.output_offset;
    for (std::int64_t c = 0; c < window.channels; ++c) {
      const Sum sum = sums[static_cast<std::size_t>(c)];
      const Sum average = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
      // An average lies between the smallest and the largest element, so it fits T.
      to[c] = clamp_to(static_cast<T>(average), limits);
    }
  }
}

}  // namespace

std::int64_t pool_units(const PoolGeometry& g) {
  return g.batches * g.output_height * g.output_width * channel_blocks(g);
}

std::int64_t pool_grain(const PoolGeometry& g) {
  constexpr std::int64_t kElementsPerChunk = 1 << 16;
  const std::int64_t rows = std::min(g.window_height, g.input_height);
  const std::int64_t columns = std::min(g.window_width, g.input_width);
  const std::int64_t per_unit = rows * columns * std::min(g.channels, kPoolChannelBlock);
  return std::max<std::int64_t>(1, kElementsPerChunk / std::max<std::int64_t>(per_unit, 1));
}

template <typename T>
void average_pool(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
                  std::int64_t last_unit) {
  constexpr std::int64_t kManyElements = 1 << 14;
  if (g.window_height * g.window_width < kManyElements &&
      average_in_vectors<T>()(g, input, limits, output, first_unit, last_unit)) {
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    average_pool_float(g, input, limits, output, first_unit, last_unit);
  } else {
    constexpr std::int64_t kLargest = std::numeric_limits<T>::max() + std::int64_t{1};
    const std::int64_t largest_count =
        std::min(g.window_height, g.input_height) * std::min(g.window_width, g.input_width);
    if (largest_count <= std::numeric_limits<std::int32_t>::max() / (kLargest + 1)) {
      average_pool_integer<T, std::int32_t>(g, input, limits, output, first_unit, last_unit);
    } else {
      average_pool_integer<T, std::int64_t>(g, input, limits, output, first_unit, last_unit);
    }
  }
}

template <typename T>
void max_pool(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
              std::int64_t last_unit) {
  if (max_in_vectors<T>()(g, input, limits, output, first_unit, last_unit)) return;
  for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
    const Window window = window_of(g, unit);
    T* to = output + window.output_offset;
    std::fill_n(to, window.channels, std::numeric_limits<T>::lowest());
    fold(g, window, input, to, [](T best, T x) { return best < x ? x : best; });
    for (std::int64_t c = 0; c < window.channels; ++c) to[c] = clamp_to(to[c], limits);
  }
}

void l2_pool(const PoolGeometry& g, const float* input, PoolLimits<float> limits, float* output,
             std::int64_t first_unit, std::int64_t last_unit) {
  std::array<float, kPoolChannelBlock> sums;
  for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
    const Window window = window_of(g, unit);
    std::fill_n(sums.begin(), window.channels, 0.0F);
    fold(g, window, input, sums.data(), [](float sum, float x) { return sum + x * x; });
    const auto count = static_cast<float>(window.count());
    float* to = output + window.output_offset;
    for (std::int64_t c = 0; c < window.channels; ++c) {
      to[c] = clamp_to(std::sqrt(sums[static_cast<std::size_t>(c)] / count), limits);
    }
  }
}

#define REEF_POOL(T)                                                                                           \
  template void average_pool<T>(const PoolGeometry&, const T*, PoolLimits<T>, T*, std::int64_t, std::int64_t); \
  template void max_pool<T>(const PoolGeometry&, const T*, PoolLimits<T>, T*, std::int64_t, std::int64_t);
REEF_POOL(float)
REEF_POOL(std::int8_t)
REEF_POOL(std::uint8_t)
REEF_POOL(std::int16_t)
#undef REEF_POOL

}  // namespace reef::kernels
