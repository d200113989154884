// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/loops.h"
#include "kernels/simd/trace.h"

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

// body(window) for units [first, last). Going on to the next window takes no division.
template <typename Body>
void for_each_window(const PoolGeometry& g, std::int64_t first, std::int64_t last, const Body& body) {
  const std::int64_t blocks = channel_blocks(g);
  std::int64_t block = first % blocks, pixel = first / blocks;
  std::int64_t out_x = pixel % g.output_width, out_y = pixel / g.output_width % g.output_height;
  std::int64_t batch = pixel / g.output_width / g.output_height;
  for (std::int64_t unit = first; unit < last; ++unit) {
    const std::int64_t channel = block * kPoolChannelBlock;
    const std::int64_t top = out_y * g.stride_height - g.pad_top, left = out_x * g.stride_width - g.pad_left;
    const std::int64_t y = std::max<std::int64_t>(top, 0), x = std::max<std::int64_t>(left, 0);
    body(Window{((batch * g.input_height + y) * g.input_width + x) * g.channels + channel, pixel * g.channels + channel,
                std::min(top + g.window_height, g.input_height) - y, std::min(left + g.window_width, g.input_width) - x,
                std::min(kPoolChannelBlock, g.channels - channel)});
    if (++block < blocks) continue;
    block = 0;
    ++pixel;
    if (++out_x < g.output_width) continue;
    out_x = 0;
    if (++out_y < g.output_height) continue;
    out_y = 0;
    ++batch;
  }
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

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
constexpr std::int64_t kPoolBytes = 64;
#include "kernels/pool/pool_body.h"
}  // namespace avx512
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

template <typename T>
using WindowFunction = void (*)(const PoolGeometry&, const Window&, const T*, PoolLimits<T>, T*);

// The active target's function for a window of so many channels; null if it has none.
template <typename T>
WindowFunction<T> max_in_vectors([[maybe_unused]] std::int64_t channels) {
  [[maybe_unused]] const std::int64_t bytes = channels * static_cast<std::int64_t>(sizeof(T));
#if defined(__x86_64__)
  if (bytes >= avx512::kPoolBytes && runs_in(SimdTarget::kAvx512)) return &avx512::max_of_window<T>;
  if (bytes >= avx2::kPoolBytes && runs_in(SimdTarget::kAvx2)) return &avx2::max_of_window<T>;
  if (runs_in(SimdTarget::kSse4)) return bytes >= 16 ? &sse4::max_of_window<T> : &sse4::max_of_few_channels<T>;
#elif defined(__aarch64__)
  if (runs_in(SimdTarget::kNeon)) return bytes >= 16 ? &neon::max_of_window<T> : &neon::max_of_few_channels<T>;
#endif
  return nullptr;
}

template <typename T>
WindowFunction<T> average_in_vectors([[maybe_unused]] std::int64_t channels, [[maybe_unused]] std::int64_t elements) {
  if constexpr (sizeof(T) != 2) {
    constexpr std::int64_t kManyElements = 1 << 14;
    if (elements >= kManyElements) return nullptr;
    [[maybe_unused]] const auto of = [&](WindowFunction<T> wide, WindowFunction<T> narrow, std::int64_t lanes) {
      const bool suits = sizeof(T) == 4 || elements <= 128;  // kMostInWords
      return channels >= lanes ? wide : suits ? narrow : nullptr;
    };
#if defined(__x86_64__)
    if constexpr (sizeof(T) == 4) {
      if (channels >= avx512::kPoolBytes / 4 && runs_in(SimdTarget::kAvx512)) return &avx512::average_of_window;
    }
    constexpr std::int64_t kLanes = sizeof(T) == 1 ? avx2::kAverageChannels : avx2::kPoolBytes / 4;
    if (channels >= kLanes && runs_in(SimdTarget::kAvx2)) return &avx2::average_of_window;
    if (runs_in(SimdTarget::kSse4)) {
      return of(&sse4::average_of_window, &sse4::average_of_few_channels,
                sizeof(T) == 1 ? sse4::kAverageChannels : sse4::kPoolBytes / 4);
    }
#elif defined(__aarch64__)
    if (runs_in(SimdTarget::kNeon)) {
      return of(&neon::average_of_window, &neon::average_of_few_channels,
                sizeof(T) == 1 ? neon::kAverageChannels : neon::kPoolBytes / 4);
    }
#endif
  }
  return nullptr;
}

// Units [first_unit, last_unit) by `find`, a function of a number of channels that gives a WindowFunction. Returns
// whether it has been done.
template <typename T, typename Find>
bool pool_in_vectors(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
                     std::int64_t last_unit, const Find& find) {
  const std::int64_t rest = g.channels % kPoolChannelBlock;
  const WindowFunction<T> whole = g.channels >= kPoolChannelBlock ? find(kPoolChannelBlock) : nullptr;
  const WindowFunction<T> last = rest != 0 ? find(rest) : nullptr;
  if ((g.channels >= kPoolChannelBlock && whole == nullptr) || (rest != 0 && last == nullptr)) return false;
  for_each_window(g, first_unit, last_unit, [&](const Window& window) {
    (window.channels == kPoolChannelBlock ? whole : last)(g, window, input, limits, output);
  });
  return true;
}

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
  for_each_window(g, first_unit, last_unit, [&](const Window& window) {
    std::fill_n(sums.begin(), window.channels, 0.0F);
    fold(g, window, input, sums.data(), [](float sum, float x) { return sum + x; });
    // TFLite counts in a float, which stops growing at 2^24.
    const auto count = static_cast<float>(std::min<std::int64_t>(window.count(), 1 << 24));
    float* to = output + window.output_offset;
    for (std::int64_t c = 0; c < window.channels; ++c) {
      to[c] = clamp_to(sums[static_cast<std::size_t>(c)] / count, limits);
    }
  });
}

// Sum: int32_t where count times the largest magnitude fits, else int64_t.
template <typename T, typename Sum>
void average_pool_integer(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output,
                          std::int64_t first_unit, std::int64_t last_unit) {
  std::array<Sum, kPoolChannelBlock> sums;
  for_each_window(g, first_unit, last_unit, [&](const Window& window) {
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
  });
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
  const auto find = [&](std::int64_t channels) {
    return average_in_vectors<T>(channels, g.window_height * g.window_width);
  };
  if (pool_in_vectors<T>(g, input, limits, output, first_unit, last_unit, find)) return;
  if constexpr (std::is_same_v<T, float>) {
    in_vectors([&] { average_pool_float(g, input, limits, output, first_unit, last_unit); });
  } else {
    constexpr std::int64_t kLargest = std::numeric_limits<T>::max() + std::int64_t{1};
    const std::int64_t largest_count =
        std::min(g.window_height, g.input_height) * std::min(g.window_width, g.input_width);
    if (largest_count <= std::numeric_limits<std::int32_t>::max() / (kLargest + 1)) {
      in_vectors([&] { average_pool_integer<T, std::int32_t>(g, input, limits, output, first_unit, last_unit); });
    } else {
      in_vectors([&] { average_pool_integer<T, std::int64_t>(g, input, limits, output, first_unit, last_unit); });
    }
  }
}

template <typename T>
void max_pool(const PoolGeometry& g, const T* input, PoolLimits<T> limits, T* output, std::int64_t first_unit,
              std::int64_t last_unit) {
  if (pool_in_vectors<T>(g, input, limits, output, first_unit, last_unit, max_in_vectors<T>)) return;
  for_each_window(g, first_unit, last_unit, [&](const Window& window) {
    T* to = output + window.output_offset;
    std::fill_n(to, window.channels, std::numeric_limits<T>::lowest());
    fold(g, window, input, to, [](T best, T x) { return best < x ? x : best; });
    for (std::int64_t c = 0; c < window.channels; ++c) to[c] = clamp_to(to[c], limits);
  });
}

void l2_pool(const PoolGeometry& g, const float* input, PoolLimits<float> limits, float* output,
             std::int64_t first_unit, std::int64_t last_unit) {
  std::array<float, kPoolChannelBlock> sums;
  for_each_window(g, first_unit, last_unit, [&](const Window& window) {
    std::fill_n(sums.begin(), window.channels, 0.0F);
    fold(g, window, input, sums.data(), [](float sum, float x) { return sum + x * x; });
    const auto count = static_cast<float>(window.count());
    float* to = output + window.output_offset;
    for (std::int64_t c = 0; c < window.channels; ++c) {
      to[c] = clamp_to(std::sqrt(sums[static_cast<std::size_t>(c)] / count), limits);
    }
  });
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
