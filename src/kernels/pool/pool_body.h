// SPDX-License-Identifier: Apache-2.0
// Pools of bytes and floats: a vector of channels, kPoolBytes long, stays in a register while the window passes by.
// Averages of bytes have a file for each target. No include guard: it is included once per target, see simd/targets.h.

template <typename T>
struct PoolVector {
  static constexpr std::int64_t kLanes = kPoolBytes / static_cast<std::int64_t>(sizeof(T));
  using Vec [[gnu::vector_size(kPoolBytes), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
};

// body(channel) for vectors that cover all channels; the last may do some again. At least kLanes channels.
template <std::int64_t kLanes, typename Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t channels, const Body& body) {
  for (std::int64_t c = 0; c < channels; c += kLanes) body(std::min(c, channels - kLanes));
}

template <typename T>
void max_of_window(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits, T* output) {
  using Vec = typename PoolVector<T>::Vec;
  const T* first = input + window.input_offset;
  T* to = output + window.output_offset;
  const Vec low = limits.low - Vec{}, high = limits.high - Vec{};
  for_each_vector<PoolVector<T>::kLanes>(window.channels, [&](std::int64_t c) {
    Vec best = std::numeric_limits<T>::lowest() - Vec{};
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const T* pixel = first + y * g.input_width * g.channels + c;
      for (std::int64_t x = 0; x < window.columns; ++x, pixel += g.channels) {
        const Vec value = *reinterpret_cast<const Vec*>(pixel);
        best = best < value ? value : best;  // NaN loses
      }
    }
    const Vec raised = best < low ? low : best;
    *reinterpret_cast<Vec*>(to + c) = high < raised ? high : raised;
  });
}

inline void average_of_window(const PoolGeometry& g, const Window& window, const float* input, PoolLimits<float> limits,
                              float* output) {
  using Vec = PoolVector<float>::Vec;
  const float* first = input + window.input_offset;
  float* to = output + window.output_offset;
  // TFLite counts in a float, which stops growing at 2^24.
  const auto count = static_cast<float>(std::min<std::int64_t>(window.count(), 1 << 24));
  const Vec low = limits.low - Vec{}, high = limits.high - Vec{};
  for_each_vector<PoolVector<float>::kLanes>(window.channels, [&](std::int64_t c) {
    Vec sum = {};
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const float* pixel = first + y * g.input_width * g.channels + c;
      for (std::int64_t x = 0; x < window.columns; ++x, pixel += g.channels)
        sum += *reinterpret_cast<const Vec*>(pixel);
    }
    const Vec average = sum / count;
    const Vec raised = average < low ? low : average;
    *reinterpret_cast<Vec*>(to + c) = high < raised ? high : raised;
  });
}

// Fewer channels than a vector has: whole vectors are read where the input goes on behind them, and what belongs to
// the window's channels is stored.
template <typename T>
struct FewChannels {
  static constexpr std::int64_t kLanes = 16 / static_cast<std::int64_t>(sizeof(T));
  using Vec [[gnu::vector_size(16), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;

  const T* first;
  std::int64_t channels;
  bool may_read_on;

  FewChannels(const PoolGeometry& g, const Window& window, const T* input)
      : first(input + window.input_offset), channels(window.channels) {
    const T* end = input + g.batches * g.input_height * g.input_width * g.channels;
    may_read_on = end - first >= ((window.rows - 1) * g.input_width + window.columns - 1) * g.channels + kLanes;
  }

  // body(vector) for all pixels of the window, row by row.
  template <typename Body>
  [[gnu::always_inline]] void for_each_pixel(const PoolGeometry& g, const Window& window, const Body& body) const {
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const T* pixel = first + y * g.input_width * g.channels;
      for (std::int64_t x = 0; x < window.columns; ++x, pixel += g.channels) {
        Vec value = {};
        if (may_read_on) [[likely]] {
          value = *reinterpret_cast<const Vec*>(pixel);
        } else {
          std::memcpy(&value, pixel, static_cast<std::size_t>(channels) * sizeof(T));
        }
        body(value);
      }
    }
  }

  // Two copies that overlap where the number of bytes is no power of two.
  [[gnu::always_inline]] void store(const Vec& values, T* to) const {
    const auto bytes = static_cast<std::size_t>(channels) * sizeof(T);
    char from[16];
    std::memcpy(from, &values, sizeof from);
    char* const target = reinterpret_cast<char*>(to);
    const auto copy = [&](auto size) {
      std::memcpy(target, from, size);
      std::memcpy(target + bytes - size, from + bytes - size, size);
    };
    if (bytes >= 8) return copy(std::integral_constant<std::size_t, 8>());
    if (bytes >= 4) return copy(std::integral_constant<std::size_t, 4>());
    if (bytes >= 2) return copy(std::integral_constant<std::size_t, 2>());
    *target = from[0];
  }

  [[gnu::always_inline]] void store_limited(const Vec& values, PoolLimits<T> limits, T* to) const {
    const Vec low = limits.low - Vec{}, high = limits.high - Vec{};
    const Vec raised = values < low ? low : values;
    store(high < raised ? high : raised, to);
  }
};

template <typename T>
void max_of_few_channels(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits, T* output) {
  using Vec = typename FewChannels<T>::Vec;
  const FewChannels<T> few(g, window, input);
  Vec best = std::numeric_limits<T>::lowest() - Vec{};
  few.for_each_pixel(
      g, window, [&](const Vec& value) __attribute__((always_inline)) {
        best = best < value ? value : best;  // NaN loses
      });
  few.store_limited(best, limits, output + window.output_offset);
}

inline void average_of_few_channels(const PoolGeometry& g, const Window& window, const float* input,
                                    PoolLimits<float> limits, float* output) {
  using Vec = FewChannels<float>::Vec;
  const FewChannels<float> few(g, window, input);
  const auto count = static_cast<float>(std::min<std::int64_t>(window.count(), 1 << 24));
  Vec sum = {};
  few.for_each_pixel(
      g, window, [&](const Vec& value) __attribute__((always_inline)) { sum += value; });
  few.store_limited(sum / count, limits, output + window.output_offset);
}

constexpr std::int64_t kMostInWords = 128;  // elements whose sum fits 16 bits

// T: int8_t or uint8_t. At most kMostInWords elements in a window. The quotient of floats is never rounded up to a
// whole number, see average_of_window.
template <typename T>
void average_of_few_channels(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits,
                             T* output) {
  using Vec = typename FewChannels<T>::Vec;
  using Words [[gnu::vector_size(32)]] = std::int16_t;
  const FewChannels<T> few(g, window, input);
  Words sums = {};
  few.for_each_pixel(
      g,
      window, [&](const Vec& value) __attribute__((always_inline)) { sums += __builtin_convertvector(value, Words); });
  std::int16_t all[16];
  std::memcpy(all, &sums, sizeof all);
  const auto count = static_cast<std::int32_t>(window.count()), half = count / 2;
  T* to = output + window.output_offset;
  const auto divisor = static_cast<float>(count);
  for (std::int64_t c = 0; c < window.channels; ++c) {
    const std::int32_t sum = all[c];
    const auto average = static_cast<std::int32_t>(static_cast<float>(sum > 0 ? sum + half : sum - half) / divisor);
    const std::int32_t raised = std::max<std::int32_t>(average, limits.low);
    to[c] = static_cast<T>(std::min<std::int32_t>(raised, limits.high));
  }
}
