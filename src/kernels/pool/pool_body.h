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
