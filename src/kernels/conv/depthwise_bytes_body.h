// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h for AVX2. No include guard: it is included between brackets, see simd/targets.h.

#include "kernels/matmul/byte_scaling_body.h"

constexpr int kParts = 8;
constexpr int kPixels = 2;

struct RowWork {
  // Input bytes of the first channel of the image: [row of the window, 4 * row_groups][column], columns from the first
  // that any window touches.
  const std::uint8_t* const* columns;
  std::int64_t span;                            // columns of a row
  std::int64_t stride, dilation, window, rows;  // of the window: columns, rows
  const std::int8_t* weights;                   // of the block
  std::int64_t group_bytes, row_groups;
  bool is_signed;
  const ByteScaling* scaling;
  std::int64_t slot;               // of the block in the scaling
  std::int64_t channel, channels;  // of the block: first, how many
  std::uint8_t* output;            // of the row's first pixel and the block's first channel
  std::int64_t output_stride;
};

// 32 channels of one row; fewer in the last block.
template <bool kWhole>
[[gnu::always_inline]] inline __m256i load_row(const RowWork& work, __m256i flip, const std::uint8_t* from) {
  if constexpr (kWhole) {
    return _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), flip);
  }
  alignas(32) std::uint8_t bytes[kDepthwiseBlock] = {};
  std::memcpy(bytes, from, static_cast<std::size_t>(work.channels));
  return _mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(bytes)), flip);
}

// Four rows of one column, interleaved.
// kThreeRows: the fourth does not count.
template <bool kWhole, bool kThreeRows>
[[gnu::always_inline]] inline void load_column(const RowWork& work, __m256i flip, const std::uint8_t* const* at,
                                               __m256i (&parts)[kParts]) {
  const __m256i r0 = load_row<kWhole>(work, flip, at[0] + work.channel),
                r1 = load_row<kWhole>(work, flip, at[work.span] + work.channel);
  const __m256i r2 = load_row<kWhole>(work, flip, at[2 * work.span] + work.channel);
  const __m256i r3 = kThreeRows ? r2 : load_row<kWhole>(work, flip, at[3 * work.span] + work.channel);
  const __m256i low01 = _mm256_unpacklo_epi8(r0, r1), high01 = _mm256_unpackhi_epi8(r0, r1);
  const __m256i low23 = _mm256_unpacklo_epi8(r2, r3), high23 = _mm256_unpackhi_epi8(r2, r3);
  const __m256i zero = _mm256_setzero_si256();
  parts[0] = _mm256_unpacklo_epi8(low01, zero);
  parts[1] = _mm256_unpackhi_epi8(low01, zero);
  parts[2] = _mm256_unpacklo_epi8(high01, zero);
  parts[3] = _mm256_unpackhi_epi8(high01, zero);
  parts[4] = _mm256_unpacklo_epi8(low23, zero);
  parts[5] = _mm256_unpackhi_epi8(low23, zero);
  parts[6] = _mm256_unpacklo_epi8(high23, zero);
  parts[7] = _mm256_unpackhi_epi8(high23, zero);
}

[[gnu::always_inline]] inline void add_column(const __m256i (&parts)[kParts], const std::int8_t* weights,
                                              __m256i* sums) {
  const auto* w = reinterpret_cast<const __m256i*>(weights);
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(parts[v], _mm256_load_si256(w + v)));
    sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(parts[v + 4], _mm256_load_si256(w + 4 + v)));
  }
}

// Results that floats cannot tell, by the reference's function.
void fix_pixel(const RowWork& work, const __m256i* sums, std::uint8_t* to) {
  for (int v = 0; v < 4; ++v) {
    const unsigned lanes = unsure_lanes(*work.scaling, sums[v], work.slot + v * kLanes);
    if (lanes == 0) continue;
    alignas(32) std::int32_t sum[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums[v]);
    for (int i = 0; i < kLanes; ++i) {
      const std::int64_t channel = i / 4 * 16 + v * 4 + i % 4;
      if ((lanes >> i & 1) == 0 || channel >= work.channels) continue;
      to[channel] = exact_byte(*work.scaling->exact, sum[i], work.channel + channel);
    }
  }
}

template <int kCount, bool kWhole, bool kSigned>
[[gnu::always_inline]] inline void finish_pixels(const RowWork& work, const __m256i (&sums)[kCount][4],
                                                 std::uint8_t* to) {
  const ByteLimits limits = load_limits(*work.scaling);
  const std::int64_t stride = work.output_stride, channels = work.channels;
  __m256i least = limits.mask, results[kCount][4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const ScaleVectors by = load_scale(*work.scaling, work.slot + v * kLanes);
#pragma GCC unroll 4
    for (int p = 0; p < kCount; ++p) {
      const __m256i scaled = scale(sums[p][v], by);
      results[p][v] = _mm256_srai_epi32(scaled, kPlaces);
      least = _mm256_min_epu32(least, _mm256_and_si256(scaled, limits.mask));
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kCount; ++p) {
    const __m256i bytes = limited_bytes<kSigned>(limits, _mm256_packs_epi32(results[p][0], results[p][1]),
                                                 _mm256_packs_epi32(results[p][2], results[p][3]));
    if constexpr (kWhole) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + p * stride), bytes);
    } else if (channels == 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + p * stride), _mm256_castsi256_si128(bytes));
    } else if (channels == 8) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + p * stride), _mm256_castsi256_si128(bytes));
    } else {
      alignas(32) std::uint8_t all[kDepthwiseBlock];
      _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
      std::memcpy(to + p * stride, all, static_cast<std::size_t>(channels));
    }
  }
  if (!all_sure(least)) [[unlikely]] {
    __m256i kept[kCount][4];
    std::memcpy(kept, sums, sizeof kept);
    for (int p = 0; p < kCount; ++p) fix_pixel(work, kept[p], to + p * stride);
  }
}

// kCount outputs from pixel `x` on. kStride, kWindow: known ones, for loops to be unrolled, or 0; a known stride also
// means no dilation and one group of rows.
template <int kCount, int kStride, int kWindow, bool kWhole, bool kThreeRows, bool kSigned>
void depthwise_pixels(const RowWork& work, std::int64_t x) {
  const __m256i flip = _mm256_set1_epi8(kSigned ? static_cast<char>(0x80) : 0);
  __m256i sums[kCount][4];
  const auto* start = reinterpret_cast<const __m256i*>(work.scaling->start.data() + work.slot);
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const __m256i first = _mm256_loadu_si256(start + v);
#pragma GCC unroll 4
    for (int p = 0; p < kCount; ++p) sums[p][v] = first;
  }
  __m256i parts[kParts];
  if constexpr (kStride != 0) {
    constexpr int kColumns = (kCount - 1) * kStride + kWindow;
    const std::uint8_t* const* column = work.columns + x * kStride;
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) {
      load_column<kWhole, kThreeRows>(work, flip, column + j, parts);
#pragma GCC unroll 4
      for (int p = 0; p < kCount; ++p) {
        const int kx = j - p * kStride;
        if (kx >= 0 && kx < kWindow) add_column(parts, work.weights + kx * work.group_bytes, sums[p]);
      }
    }
  } else {
    static_assert(kCount == 1);
    for (std::int64_t kx = 0; kx < work.window; ++kx) {
      const std::uint8_t* const* column = work.columns + x * work.stride + kx * work.dilation;
      for (std::int64_t g = 0; g < work.row_groups; ++g) {
        load_column<kWhole, kThreeRows>(work, flip, column + 4 * g * work.span, parts);
        add_column(parts, work.weights + (kx * work.row_groups + g) * work.group_bytes, sums[0]);
      }
    }
  }
  finish_pixels<kCount, kWhole, kSigned>(work, sums, work.output + x * work.output_stride);
}

template <int kStride, bool kWhole, bool kSigned>
void depthwise_3x3(const RowWork& work, std::int64_t pixels) {
  std::int64_t x = 0;
  for (; x + kPixels <= pixels; x += kPixels) depthwise_pixels<kPixels, kStride, 3, kWhole, true, kSigned>(work, x);
  for (; x < pixels; ++x) depthwise_pixels<1, kStride, 3, kWhole, true, kSigned>(work, x);
}

template <bool kWhole, bool kSigned>
void depthwise_of(const RowWork& work, std::int64_t pixels) {
  if (work.rows == 3 && work.dilation == 1 && work.window == 3 && work.stride <= 2) {
    return work.stride == 1 ? depthwise_3x3<1, kWhole, kSigned>(work, pixels)
                            : depthwise_3x3<2, kWhole, kSigned>(work, pixels);
  }
  for (std::int64_t x = 0; x < pixels; ++x) depthwise_pixels<1, 0, 0, kWhole, false, kSigned>(work, x);
}

void depthwise_row(const RowWork& work, std::int64_t pixels) {
  if (work.channels == kDepthwiseBlock) {
    work.is_signed ? depthwise_of<true, true>(work, pixels) : depthwise_of<true, false>(work, pixels);
  } else {
    work.is_signed ? depthwise_of<false, true>(work, pixels) : depthwise_of<false, false>(work, pixels);
  }
}
