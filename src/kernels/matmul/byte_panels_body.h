// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for one x86 target. REEF_VNNI: rows of unsigned bytes, four products at a time;
// else rows of 16-bit numbers, two at a time. No include guard: it is included once per target, see simd/targets.h.

#if REEF_VNNI
using RowElement = std::uint8_t;
constexpr int kGroup = 4;
[[gnu::always_inline]] inline __m256i load_weights(const std::int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i x, __m256i w) {
  return _mm256_dpbusd_epi32(sums, x, w);
}
#else
using RowElement = std::int16_t;
constexpr int kGroup = 2;
[[gnu::always_inline]] inline __m256i load_weights(const std::int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i x, __m256i w) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, w));
}
#endif

constexpr int kLanes = 8;

struct TileWork {
  const RowElement* rows;
  std::int64_t row_stride, steps;  // elements; groups of products
  const std::int32_t* row_terms;   // per row, added to all its sums; null: none
  const std::int8_t* panel;
  const ByteScaling* scaling;
  std::int64_t channel, columns;  // first of the panel; how many there are
  std::uint8_t* output;           // of the first row and the panel's first column
  std::int64_t output_stride;
  bool is_signed;
};

// Sums times factor plus one half, as fixed-point numbers of scaling.bits binary places; see byte_panels.h.
[[gnu::always_inline]] inline __m256i scale(__m256i sums, __m256 factor, __m256 above, __m256 below) {
  const __m256 sum = _mm256_cvtepi32_ps(sums);
  return _mm256_cvtps_epi32(_mm256_fmadd_ps(sum, factor, _mm256_blendv_ps(above, below, sum)));
}

// Results that floats cannot tell, by the reference's function.
void fix_row(const TileWork& work, const __m256i* sums, int vectors, std::uint8_t* to) {
  const ByteScaling& scaling = *work.scaling;
  const Requantizer& q = *scaling.exact;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t first = work.channel + v * kLanes;
    const __m256i scaled =
        scale(sums[v], _mm256_loadu_ps(scaling.factor.data() + first), _mm256_loadu_ps(scaling.above.data() + first),
              _mm256_loadu_ps(scaling.below.data() + first));
    const __m256i places = _mm256_and_si256(scaled, _mm256_set1_epi32(scaling.mask()));
    const __m256i unsure = _mm256_cmpgt_epi32(_mm256_set1_epi32(kSurePlaces), places);
    unsigned lanes = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(unsure)));
    if (!scaling.is_fast) lanes = (1u << kLanes) - 1;
    if (lanes == 0) continue;
    alignas(32) std::int32_t sum[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums[v]);
    for (int i = 0; i < kLanes && v * kLanes + i < work.columns; ++i) {
      if ((lanes >> i & 1) == 0) continue;
      const std::int32_t result = numeric::wrapping_add(scale_exactly(q, sum[i], first + i), q.zero_point);
      to[v * kLanes + i] = static_cast<std::uint8_t>(numeric::clamp(result, q.lowest, q.highest));
    }
  }
}

// Zero point, limits, and one row's bytes to memory. `results` beyond kVectors are not looked at.
template <int kVectors>
[[gnu::always_inline]] inline void store_row(const TileWork& work, const __m256i* results, std::uint8_t* to) {
  const Requantizer& q = *work.scaling->exact;
  const __m256i zero_point = _mm256_set1_epi16(static_cast<std::int16_t>(q.zero_point));
  const __m256i first = results[0], second = kVectors > 1 ? results[kVectors > 1 ? 1 : 0] : first;
  const __m256i third = kVectors > 2 ? results[kVectors > 2 ? 2 : 0] : first;
  const __m256i fourth = kVectors > 3 ? results[kVectors > 3 ? 3 : 0] : third;
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(first, second), zero_point);
  const __m256i high = kVectors > 2 ? _mm256_adds_epi16(_mm256_packs_epi32(third, fourth), zero_point) : low;
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i bytes;
  if (work.is_signed) {
    bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8(static_cast<char>(q.lowest)));
    bytes = _mm256_min_epi8(bytes, _mm256_set1_epi8(static_cast<char>(q.highest)));
  } else {
    bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
    bytes = _mm256_max_epu8(bytes, _mm256_set1_epi8(static_cast<char>(q.lowest)));
    bytes = _mm256_min_epu8(bytes, _mm256_set1_epi8(static_cast<char>(q.highest)));
  }
  // Masked stores of bytes take a Zen 4 core longer than all of the above.
  if (work.columns == 4 * kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
    return;
  }
  const __m128i half = _mm256_castsi256_si128(bytes);
  if (kVectors <= 2 && work.columns == 2 * kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
  } else if (kVectors == 3 && work.columns == 3 * kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * kLanes), _mm256_extracti128_si256(bytes, 1));
  } else if (work.columns == kLanes) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), half);
  } else {
    alignas(32) std::uint8_t all[4 * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
    std::memcpy(to, all, static_cast<std::size_t>(work.columns));
  }
}

template <int kRows, int kVectors>
void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  __m256 factors[kVectors], above[kVectors], below[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    factors[v] = _mm256_loadu_ps(work.scaling->factor.data() + work.channel + v * kLanes);
    above[v] = _mm256_loadu_ps(work.scaling->above.data() + work.channel + v * kLanes);
    below[v] = _mm256_loadu_ps(work.scaling->below.data() + work.channel + v * kLanes);
  }
  const __m256i mask = _mm256_set1_epi32(work.scaling->mask());
  const __m128i bits = _mm_cvtsi32_si128(work.scaling->bits);
  __m256i least = mask;  // binary places of all results: the closest to an integer
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    __m256i results[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i scaled = scale(sums[r][v], factors[v], above[v], below[v]);
      results[v] = _mm256_sra_epi32(scaled, bits);
      least = _mm256_min_epu32(least, _mm256_and_si256(scaled, mask));
    }
    store_row<kVectors>(work, results, work.output + r * work.output_stride);
  }
  const __m256i sure = _mm256_cmpgt_epi32(least, _mm256_set1_epi32(kSurePlaces - 1));
  if (!work.scaling->is_fast || _mm256_movemask_epi8(sure) != -1) [[unlikely]] {
    for (int r = 0; r < kRows; ++r) fix_row(work, sums[r], kVectors, work.output + r * work.output_stride);
  }
}

template <int kRows, int kVectors>
void multiply_tile(const TileWork& work) {
  __m256i sums[kRows][kVectors];
  const std::int32_t* start = work.scaling->start.data() + work.channel;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(start + v * kLanes));
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[r][v] = work.row_terms == nullptr ? first : _mm256_add_epi32(first, _mm256_set1_epi32(work.row_terms[r]));
    }
  }
  const RowElement* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = work.rows + r * work.row_stride;
  const std::int8_t* w = work.panel;
  for (std::int64_t k = 0; k < work.steps; ++k, w += kVectors * kLanes * kGroup) {
    __m256i weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = load_weights(w + v * kLanes * kGroup);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      std::int32_t group;
      std::memcpy(&group, x[r] + k * kGroup, sizeof group);
      const __m256i value = _mm256_set1_epi32(group);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = add_products(sums[r][v], value, weights[v]);
    }
  }
  // Copied, so that the sums above can stay in registers: what others see must lie in memory.
  __m256i finished[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) finished[r][v] = sums[r][v];
  }
  finish_tile<kRows, kVectors>(work, finished);
}

// As many rows as fit, from `row` on; returns how many were done.
template <int kVectors>
std::int64_t multiply_rows(TileWork work, std::int64_t row, std::int64_t count) {
  work.rows += row * work.row_stride;
  if (work.row_terms != nullptr) work.row_terms += row;
  work.output += row * work.output_stride;
  if (count - row >= REEF_TILE_ROWS(kVectors)) {
    multiply_tile<REEF_TILE_ROWS(kVectors), kVectors>(work);
    return REEF_TILE_ROWS(kVectors);
  }
  if (count - row >= 4) {
    multiply_tile<4, kVectors>(work);
    return 4;
  }
  if (count - row >= 2) {
    multiply_tile<2, kVectors>(work);
    return 2;
  }
  multiply_tile<1, kVectors>(work);
  return 1;
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  for (std::int64_t row = 0; row < count;) {
    switch (vectors) {
      case 1:
        row += multiply_rows<1>(work, row, count);
        break;
#if REEF_VNNI
      case 3:
        row += multiply_rows<3>(work, row, count);
        break;
      case 4:
        row += multiply_rows<4>(work, row, count);
        break;
#endif
      default:
        row += multiply_rows<2>(work, row, count);
        break;
    }
  }
}

// One piece of a row: `length` bytes become row elements, and their sum is returned.
// flip: 0x80 for int8 with VNNI, which makes it unsigned; zero_point: what is subtracted otherwise.
template <typename T>
std::int32_t load_piece(const T* from, std::int64_t length, std::int32_t zero_point, bool with_sum, RowElement* to) {
#if REEF_VNNI
  (void)zero_point;
  const __m256i flip = _mm256_set1_epi8(std::is_signed_v<T> ? static_cast<char>(0x80) : 0);
  __m256i total = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < length; i += 32) {
    const std::int64_t left = length - i;
    const __mmask32 mask = left >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1u << left) - 1);
    const __m256i bytes = _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, from + i), flip);
    _mm256_mask_storeu_epi8(to + i, mask, bytes);
    if (with_sum) {
      const __m256i counted = _mm256_maskz_mov_epi8(mask, bytes);  // the others hold `flip`
      total = _mm256_add_epi64(total, _mm256_sad_epu8(counted, _mm256_setzero_si256()));
    }
  }
  if (!with_sum) return 0;
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  return static_cast<std::int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
#else
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point);
  if (with_sum) {
    for (std::int64_t i = 0; i < length; ++i) total += to[i];
  }
  return total;
#endif
}

// `count` rows, one after the other; padding at the end of each stays 0. row_sums: null if they are not needed.
template <typename T>
void load_rows(const WindowRows<T>& windows, std::int64_t count, bool is_contiguous, std::int32_t zero_point,
               RowElement* rows, std::int64_t row_stride, std::int32_t* row_sums) {
  if (is_contiguous && row_sums == nullptr) {
    load_piece(windows.rows()[0], count * row_stride, zero_point, false, rows);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    std::uint32_t total = 0;
    for (std::int64_t run = 0; run < windows.runs(); ++run) {
      total += static_cast<std::uint32_t>(load_piece(windows.rows()[run * windows.row_capacity() + r], windows.length(),
                                                     zero_point, row_sums != nullptr,
                                                     rows + r * row_stride + run * windows.length()));
    }
    if (row_sums != nullptr) row_sums[r] = static_cast<std::int32_t>(total);
  }
}
