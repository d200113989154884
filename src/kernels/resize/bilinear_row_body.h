// SPDX-License-Identifier: Apache-2.0
// Bilinear interpolation of 8-bit or float pixels in float, for one target. Same products and sums in the same order,
// and so the same bits, as blend() in resize.cpp. No include guard: it is included once per target, see simd/targets.h.

constexpr std::int64_t kLanes = 8;
using Floats [[gnu::vector_size(kLanes * 4), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(kLanes * 4)]] = std::int32_t;
using Bytes [[gnu::vector_size(kLanes), gnu::aligned(1), gnu::may_alias]] = std::uint8_t;

// weighted[i] = input[i] * weight
void weigh(const std::uint8_t* input, std::int64_t count, float weight, float* weighted) {
  for (std::int64_t i = 0; i < count; ++i) weighted[i] = static_cast<float>(input[i]) * weight;
}

// 8 channels from `c` on: the sum of four weighted pixels, to a byte.
[[gnu::always_inline]] inline void blend_8(const float* lower_left, const float* upper_left, const float* lower_right,
                                           const float* upper_right, float left, float right, std::uint8_t* out) {
  const auto at = [](const float* from) -> const Floats& { return *reinterpret_cast<const Floats*>(from); };
  const Floats sum = at(lower_left) * left + at(upper_left) * left + at(lower_right) * right + at(upper_right) * right;
#if REEF_AVX2
  // gcc takes such a conversion apart, number by number.
  const __m256i whole = _mm256_cvttps_epi32(sum + 0.5f);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
#else
  *reinterpret_cast<Bytes*>(out) = __builtin_convertvector(__builtin_convertvector(sum + 0.5f, Ints), Bytes);
#endif
}

// A row of output pixels from the two input rows around it, weighted: [input column][channel]. At least kLanes
// channels.
void blend_pixels(const float* lower, const float* upper, std::int64_t channels, const Position<float>* columns,
                  std::int64_t count, std::uint8_t* output) {
  for (std::int64_t i = 0; i < count; ++i, output += channels) {
    const Position<float> x = columns[i];
    const float* lower_left = lower + x.lower * channels;
    const float* upper_left = upper + x.lower * channels;
    const float* lower_right = lower + x.upper * channels;
    const float* upper_right = upper + x.upper * channels;
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      const std::int64_t k = std::min(c, channels - kLanes);  // the last vector may do some channels again
      blend_8(lower_left + k, upper_left + k, lower_right + k, upper_right + k, x.lower_weight, x.upper_weight,
              output + k);
    }
  }
}
