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

#include "kernels/matmul/byte_scaling_body.h"

// Results that floats cannot tell, by the reference's function.
void fix_row(const TileWork& work, const __m256i* sums, int vectors, std::uint8_t* to) {
  const ByteScaling& scaling = *work.scaling;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t first = work.channel + v * kLanes;
    const unsigned lanes = unsure_lanes(scaling, sums[v], first);
    if (lanes == 0) continue;
    alignas(32) std::int32_t sum[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums[v]);
    for (int i = 0; i < kLanes && v * kLanes + i < work.columns; ++i) {
      if ((lanes >> i & 1) != 0) to[v * kLanes + i] = exact_byte(*scaling.exact, sum[i], first + i);
    }
  }
}

// One row's bytes to memory. Masked stores of bytes would take a Zen 4 core longer than all that comes before.
template <int kVectors, bool kWhole>
[[gnu::always_inline]] inline void store_row(__m256i bytes, std::int64_t columns, std::uint8_t* to) {
  const __m128i half = _mm256_castsi256_si128(bytes);
  if constexpr (!kWhole) {
    alignas(32) std::uint8_t all[4 * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
    std::memcpy(to, all, static_cast<std::size_t>(columns));
  } else if constexpr (kVectors == 4) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  } else if constexpr (kVectors == 3) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * kLanes), _mm256_extracti128_si256(bytes, 1));
  } else if constexpr (kVectors == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), half);
  }
}

// kWhole: all columns of the vectors count. Not inlined: gcc would keep the sums of the loop before in memory.
template <int kRows, int kVectors, bool kSigned, bool kWhole>
[[gnu::noinline]] void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  ScaleVectors by[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) by[v] = load_scale(*work.scaling, work.channel + v * kLanes);
  const ByteLimits limits = load_limits(*work.scaling);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::uint8_t* to = work.output;
  const std::int64_t stride = work.output_stride, columns = work.columns;
  __m256i least = limits.mask;  // binary places of all results: the closest to an integer
  for (int r = 0; r < kRows; ++r, to += stride) {
    __m256i results[4];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i scaled = scale(sums[r][v], by[v]);
      results[v] = _mm256_sra_epi32(scaled, limits.bits);
      least = _mm256_min_epu32(least, _mm256_and_si256(scaled, limits.mask));
    }
#pragma GCC unroll 4
    for (int v = kVectors; v < 4; ++v) results[v] = results[kVectors - 1];
    const __m256i low = _mm256_packs_epi32(results[0], results[1]);
    const __m256i high = kVectors > 2 ? _mm256_packs_epi32(results[2], results[3]) : low;
    const __m256i bytes = _mm256_permutevar8x32_epi32(limited_bytes<kSigned>(limits, low, high), order);
    store_row<kVectors, kWhole>(bytes, columns, to);
  }
  if (!all_sure(*work.scaling, least)) [[unlikely]] {
    for (int r = 0; r < kRows; ++r) fix_row(work, sums[r], kVectors, work.output + r * work.output_stride);
  }
}

template <int kRows, int kVectors>
void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  if (work.columns == kVectors * kLanes) {
    work.is_signed ? finish_tile<kRows, kVectors, true, true>(work, sums)
                   : finish_tile<kRows, kVectors, false, true>(work, sums);
  } else {
    work.is_signed ? finish_tile<kRows, kVectors, true, false>(work, sums)
                   : finish_tile<kRows, kVectors, false, false>(work, sums);
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

// All rows: tiles of the usual number of rows, then smaller ones.
template <int kVectors>
void multiply_rows(TileWork work, std::int64_t count) {
  const auto advance = [&](std::int64_t rows) {
    work.rows += rows * work.row_stride;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    count -= rows;
  };
  while (count >= REEF_TILE_ROWS(kVectors)) {
    multiply_tile<REEF_TILE_ROWS(kVectors), kVectors>(work);
    advance(REEF_TILE_ROWS(kVectors));
  }
  while (count >= 4) {
    multiply_tile<4, kVectors>(work);
    advance(4);
  }
  while (count >= 2) {
    multiply_tile<2, kVectors>(work);
    advance(2);
  }
  if (count > 0) multiply_tile<1, kVectors>(work);
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  switch (vectors) {
    case 1:
      return multiply_rows<1>(work, count);
#if REEF_VNNI
    case 3:
      return multiply_rows<3>(work, count);
    case 4:
      return multiply_rows<4>(work, count);
#endif
    default:
      return multiply_rows<2>(work, count);
  }
}

// One piece of a row: `length` bytes become row elements; their sum is returned if kSum. VNNI: int8 is made unsigned;
// else the zero point is subtracted. Up to 31 elements beyond the end may be written too.
// `end`: of the tensor, which must not be read beyond.
template <typename T, bool kSum>
[[gnu::always_inline]] inline std::int32_t load_piece(const T* from, std::int64_t length, [[maybe_unused]] const T* end,
                                                      [[maybe_unused]] std::int32_t zero_point, RowElement* to) {
#if REEF_VNNI
  const __m256i flip = _mm256_set1_epi8(std::is_signed_v<T> ? static_cast<char>(0x80) : 0);
  const __m256i zero = _mm256_setzero_si256();
  __m256i total = zero;
  std::int64_t i = 0;
  for (; i + 32 <= length; i += 32) {
    const __m256i bytes = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)), flip);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bytes);
    if (kSum) total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
  }
  if (!kSum && i < length && length - i <= 16 && end - from >= i + 16) {
    // Fewer bytes cross fewer cache lines.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_xor_si128(bytes, _mm256_castsi256_si128(flip)));
  } else if (i < length) {
    const auto mask = static_cast<__mmask32>((1u << (length - i)) - 1);
    // Masked loads take longer, masked stores far longer.
    const __m256i loaded = end - from >= i + 32 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))
                                                : _mm256_maskz_loadu_epi8(mask, from + i);
    const __m256i bytes = _mm256_xor_si256(loaded, flip);
    // What lies beyond the end is written later, or multiplied by 0.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bytes);
    if (kSum) total = _mm256_add_epi64(total, _mm256_sad_epu8(_mm256_maskz_mov_epi8(mask, bytes), zero));
  }
  if (!kSum) return 0;
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  return static_cast<std::int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
#else
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point);
  if (kSum) {
    for (std::int64_t i = 0; i < length; ++i) total += to[i];
  }
  return total;
#endif
}

// Positions outside of the image.
template <typename T>
[[gnu::noinline]] void load_outside(std::int64_t length, [[maybe_unused]] std::int32_t zero_point, RowElement* to) {
#if REEF_VNNI
  const std::int32_t element = zero_point + (std::is_signed_v<T> ? 128 : 0);
#else
  const std::int32_t element = 0;
#endif
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<RowElement>(element);
}

std::int32_t sum_of_row(const RowElement* row, std::int64_t length) {
#if REEF_VNNI
  const __m256i zero = _mm256_setzero_si256();
  __m256i total = zero;
  std::int64_t i = 0;
  for (; i + 32 <= length; i += 32) {
    total =
        _mm256_add_epi64(total, _mm256_sad_epu8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i)), zero));
  }
  const auto mask = static_cast<__mmask32>((1u << (length - i)) - 1);
  total = _mm256_add_epi64(total, _mm256_sad_epu8(_mm256_maskz_loadu_epi8(mask, row + i), zero));
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  return static_cast<std::int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
#else
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < length; ++i) total += row[i];
  return total;
#endif
}

// What loading windows needs to know. Passed by value: bytes that are stored might change anything that is pointed to.
template <typename T>
struct WindowShape {
  std::int64_t channels, window_height, window_width, height, width, dilation_y, dilation_x;
  std::int64_t pixel_stride, line_stride;  // of the image, in elements
  bool in_lines;                           // pieces are whole lines of the window
  const T* end;
  std::int32_t zero_point;
};

// One window as a row: pieces are whole lines of the window where channels are not in groups and nothing is dilated.
// image: of this window's batch and group; y0, x0: where the window begins.
template <typename T>
[[gnu::always_inline]] inline void load_window(const WindowShape<T> s, const T* image, std::int64_t y0, std::int64_t x0,
                                               RowElement* to) {
  const std::int64_t line_length = s.window_width * s.channels;
  const std::int64_t first = std::clamp<std::int64_t>(-x0, 0, s.window_width);
  const std::int64_t last = std::clamp<std::int64_t>(s.width - x0, first, s.window_width);
  const T* line = image + y0 * s.line_stride + (x0 + first) * s.pixel_stride;
  for (std::int64_t ky = 0; ky < s.window_height;
       ++ky, to += line_length, y0 += s.dilation_y, line += s.dilation_y * s.line_stride) {
    if (y0 < 0 || y0 >= s.height) {
      load_outside<T>(line_length, s.zero_point, to);
    } else if (s.in_lines) {
      if (first > 0) load_outside<T>(first * s.channels, s.zero_point, to);
      load_piece<T, false>(line, (last - first) * s.channels, s.end, s.zero_point, to + first * s.channels);
      if (last < s.window_width) {
        load_outside<T>((s.window_width - last) * s.channels, s.zero_point, to + last * s.channels);
      }
    } else {
      for (std::int64_t kx = 0; kx < s.window_width; ++kx) {
        const std::int64_t in_x = x0 + kx * s.dilation_x;
        if (in_x >= 0 && in_x < s.width) {
          load_piece<T, false>(image + y0 * s.line_stride + in_x * s.pixel_stride, s.channels, s.end, s.zero_point,
                               to + kx * s.channels);
        } else {
          load_outside<T>(s.channels, s.zero_point, to + kx * s.channels);
        }
      }
    }
  }
}

// Windows of output pixels [first, first + count) as rows, one after the other. row_sums: null if they are not needed.
template <typename T>
void load_rows(const ConvShape& s, const T* input, std::int32_t zero_point, std::int64_t group, std::int64_t first,
               std::int64_t count, RowElement* rows, std::int64_t row_stride, std::int32_t* row_sums) {
  const T* group_input = input + group * s.group_inputs();
  const T* end = input + s.batches * s.input_batch_size();
  if (s.is_pointwise() && row_sums == nullptr && s.input_channels == row_stride) {
    load_piece<T, false>(input + first * row_stride, count * row_stride, end, zero_point, rows);
    return;
  }
  if (s.is_pointwise()) {
    for (std::int64_t r = 0; r < count; ++r, rows += row_stride) {
      const T* from = group_input + (first + r) * s.input_channels;
      if (row_sums != nullptr) {
        row_sums[r] = load_piece<T, true>(from, s.group_inputs(), end, zero_point, rows);
      } else {
        load_piece<T, false>(from, s.group_inputs(), end, zero_point, rows);
      }
    }
    return;
  }
  const WindowShape<T> shape{s.group_inputs(),
                             s.y.window,
                             s.x.window,
                             s.y.input,
                             s.x.input,
                             s.y.dilation,
                             s.x.dilation,
                             s.input_channels,
                             s.x.input * s.input_channels,
                             s.x.dilation == 1 && s.groups == 1,
                             end,
                             zero_point};
  const std::int64_t width = s.x.output, stride_x = s.x.stride;
  const RowElement* const first_row = rows;
  std::int64_t x = first % s.x.output, row = first / s.x.output;
  for (std::int64_t r = 0; r < count; ++row, x = 0) {
    const T* image = group_input + row / s.y.output * s.input_batch_size();
    const std::int64_t y0 = s.y.origin(row % s.y.output);
    std::int64_t x0 = s.x.origin(x);
    for (; x < width && r < count; ++x, ++r, rows += row_stride, x0 += stride_x)
      load_window<T>(shape, image, y0, x0, rows);
  }
  if (row_sums == nullptr) return;
  // Not row by row above: what was just written in pieces cannot be read at once.
  for (std::int64_t r = 0; r < count; ++r) row_sums[r] = sum_of_row(first_row + r * row_stride, s.depth());
}
