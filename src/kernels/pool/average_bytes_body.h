// SPDX-License-Identifier: Apache-2.0
// Averages of bytes for SSE4 and AVX2, 8 or 16 channels at a time. No include guard: it is included once per target,
// see simd/targets.h.

#include "kernels/simd/vectors_body.h"

// A vector of sums divided by `count`, halves away from zero. Sums are below 2^23 and averages below 2^9, so that the
// quotient of floats is never rounded up to a whole number for a count below 2^14.
[[gnu::always_inline]] inline Ints averages(Ints sums, Floats count, Ints half) {
  const Ints away = REEF_MM(add_epi32)(sums, REEF_MM(sign_epi32)(half, sums));
  return REEF_MM(cvttps_epi32)(REEF_MM(div_ps)(REEF_MM(cvtepi32_ps)(away), count));
}

constexpr std::int64_t kAverageChannels = kVectorBytes / 2;  // at a time

// T: int8_t or uint8_t. Fewer than 2^14 elements in a window.
template <typename T>
void average_of_window(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits, T* output) {
  constexpr std::int64_t kMostAtOnce = 120;  // what 16 bits hold the sum of
  const T* first = input + window.input_offset;
  T* to = output + window.output_offset;
  const Floats count = REEF_MM(set1_ps)(static_cast<float>(window.count()));
  const Ints half = REEF_MM(set1_epi32)(static_cast<std::int32_t>(window.count() / 2));
  const __m128i low = _mm_set1_epi8(static_cast<char>(limits.low)),
                high = _mm_set1_epi8(static_cast<char>(limits.high));
  for_each_vector<kAverageChannels>(window.channels, [&](std::int64_t c) {
    Ints first_sums = zero_ints(), last_sums = first_sums;  // of half of the channels each
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const T* pixel = first + y * g.input_width * g.channels + c;
      for (std::int64_t left = window.columns; left > 0; left -= kMostAtOnce) {
        Ints sums = zero_ints();
        for (std::int64_t x = std::min(left, kMostAtOnce); x > 0; --x, pixel += g.channels) {
          sums = REEF_MM(add_epi16)(sums, widened_bytes<std::is_signed_v<T>>(pixel));
        }
        first_sums = REEF_MM(add_epi32)(first_sums, REEF_MM(cvtepi16_epi32)(first_half(sums)));
        last_sums = REEF_MM(add_epi32)(last_sums, REEF_MM(cvtepi16_epi32)(second_half(sums)));
      }
    }
    const Ints words =
        packed_in_order(REEF_MM(packs_epi32)(averages(first_sums, count, half), averages(last_sums, count, half)));
    const __m128i lower = first_half(words), upper = second_half(words);
    const __m128i results = std::is_signed_v<T> ? _mm_min_epi8(_mm_max_epi8(_mm_packs_epi16(lower, upper), low), high)
                                                : _mm_min_epu8(_mm_max_epu8(_mm_packus_epi16(lower, upper), low), high);
    store_half(to + c, results);
  });
}
