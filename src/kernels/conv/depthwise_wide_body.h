// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h on vectors of 64 bytes: 16 channels by four rows of a window. Four rows of the image serve two
// rows of outputs where windows have three and move by one: each column is loaded and interleaved once for both.
// No include guard: it is included once per target, see simd/targets.h.

#include "kernels/matmul/byte_finish_body.h"

constexpr int kWidePixels = 4;  // outputs side by side that share columns

struct WideRowWork {
  // Input bytes of the first channel of the image: [row, 4 * row_groups][column], columns from the first that any
  // window touches.
  const std::uint8_t* const* columns;
  std::int64_t span;                      // columns of a row
  std::int64_t stride, dilation, window;  // columns
  std::int64_t row_groups;
  bool has_three_rows;         // of a window; the fourth of a group does not count
  const std::int8_t* weights;  // of the block: [output row][column][group of rows][summand][64 bytes, twice]
  std::int64_t summands;
  bool is_signed;
  const ByteScaling* scaling;
  std::int64_t slot;               // of the block in the scaling
  std::int64_t channel, channels;  // of the block: first, how many
  std::uint8_t* output;            // of the row's first pixel and the block's first channel
  std::int64_t pixel_stride, row_stride;

  std::int64_t weights_of(std::int64_t row, std::int64_t kx, std::int64_t group) const {
    return ((row * window + kx) * row_groups + group) * summands * 128;
  }
};

// Bytes of 16 channels of four rows, one row after the other and 32 channels each, to groups of four per channel.
alignas(64) constexpr std::uint8_t kInterleaveLow[64] = {
    0,  32,  64, 96,  1,  33,  65, 97,  2,  34,  66, 98,  3,  35,  67, 99,  4,  36,  68, 100, 5,  37,
    69, 101, 6,  38,  70, 102, 7,  39,  71, 103, 8,  40,  72, 104, 9,  41,  73, 105, 10, 42,  74, 106,
    11, 43,  75, 107, 12, 44,  76, 108, 13, 45,  77, 109, 14, 46,  78, 110, 15, 47,  79, 111};
alignas(64) constexpr std::uint8_t kInterleaveHigh[64] = {
    16, 48,  80, 112, 17, 49,  81, 113, 18, 50,  82, 114, 19, 51,  83, 115, 20, 52,  84, 116, 21, 53,
    85, 117, 22, 54,  86, 118, 23, 55,  87, 119, 24, 56,  88, 120, 25, 57,  89, 121, 26, 58,  90, 122,
    27, 59,  91, 123, 28, 60,  92, 124, 29, 61,  93, 125, 30, 62,  94, 126, 31, 63,  95, 127};

// 32 channels of a row; fewer in the last block.
template <bool kWhole>
[[gnu::always_inline]] inline __m256i load_channels(const std::uint8_t* from, __mmask32 mask) {
  return kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)) : _mm256_maskz_loadu_epi8(mask, from);
}

// One result that floats cannot tell: its sum again, then the reference's function.
[[gnu::noinline, gnu::cold]] void fix_wide_result(const WideRowWork& work, std::int64_t x, std::int64_t row,
                                                  std::int64_t column) {
  const int flip = work.is_signed ? 0x80 : 0;
  auto sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + column)]);
  for (std::int64_t kx = 0; kx < work.window; ++kx) {
    const std::uint8_t* const* at = work.columns + x * work.stride + kx * work.dilation;
    for (std::int64_t i = 0; i < 4 * work.row_groups; ++i) {
      const std::int8_t* w = work.weights + work.weights_of(row, kx, i / 4) + column * 4 + i % 4;
      const int value = at[i * work.span][work.channel + column] ^ flip;
      for (std::int64_t part = 0; part < work.summands; ++part)
        sum += static_cast<std::uint32_t>(value * w[part * 128]);
    }
  }
  work.output[x * work.pixel_stride + row * work.row_stride + column] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
}

// In assembler, so that the sums stay in the registers that they are in (see matmul/byte_tiles_body.h).
[[gnu::always_inline]] inline void add_four(__m512i& sums, __m512i x, const std::int8_t* weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "m"(*reinterpret_cast<const __m512i*>(weights)));
}

// What is the same for all of a row's pixels.
struct WideTables {
  __m512i flip, low, high;
  __mmask32 mask;
};

// Products of one column of four rows of the image with the weights at `weights`, added to one pixel's sums.
template <int kSummands>
[[gnu::always_inline]] inline void add_wide_column(const __m512i (&parts)[2], const std::int8_t* weights,
                                                   std::int64_t summands, __m512i (&sums)[2]) {
  add_four(sums[0], parts[0], weights);
  add_four(sums[1], parts[1], weights + 64);
  if constexpr (kSummands == 0) {
    for (std::int64_t i = 1; i < summands; ++i) {
      add_four(sums[0], parts[0], weights + i * 128);
      add_four(sums[1], parts[1], weights + i * 128 + 64);
    }
  }
}

// Four rows of one column, interleaved. kThreeRows: the fourth does not count. `at`: of the first row in the table.
template <bool kWhole, bool kThreeRows>
[[gnu::always_inline]] inline void load_wide_column(const WideTables& tables, const std::uint8_t* const* at,
                                                    std::int64_t span, std::int64_t channel, __m512i (&parts)[2]) {
  const __m512i first = _mm512_zextsi256_si512(load_channels<kWhole>(at[0] + channel, tables.mask));
  const __m512i a = _mm512_xor_si512(
      _mm512_inserti64x4(first, load_channels<kWhole>(at[span] + channel, tables.mask), 1), tables.flip);
  __m512i b = _mm512_zextsi256_si512(load_channels<kWhole>(at[2 * span] + channel, tables.mask));
  if constexpr (!kThreeRows) {
    b = _mm512_inserti64x4(b, load_channels<kWhole>(at[3 * span] + channel, tables.mask), 1);
  }
  b = _mm512_xor_si512(b, tables.flip);
  parts[0] = _mm512_permutex2var_epi8(a, tables.low, b);
  parts[1] = _mm512_permutex2var_epi8(a, tables.high, b);
}

// kCount outputs from pixel `x` on, in kRows rows. kStride: 1 or 2, with windows of 3 columns and one group of rows; or
// 0, for all others.
template <int kRows, int kCount, int kStride, int kSummands, bool kWhole, bool kSigned, bool kPlain>
void wide_pixels(const WideRowWork& work, std::int64_t x) {
  const WideTables tables{_mm512_set1_epi8(kSigned ? static_cast<char>(0x80) : 0), _mm512_load_si512(kInterleaveLow),
                          _mm512_load_si512(kInterleaveHigh),
                          static_cast<__mmask32>((std::uint64_t{1} << work.channels) - 1)};
  __m512i sums[kRows][kCount][2];
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  for_constants<kRows * kCount * 2>([&](auto i) __attribute__((always_inline)) {
    sums[i / (2 * kCount)][i / 2 % kCount][i % 2] = _mm512_loadu_si512(start + i % 2 * kWideLanes);
  });
  __m512i parts[2];
  if constexpr (kStride != 0) {
    const std::uint8_t* const* columns = work.columns + x * kStride;
    for_constants<(kCount - 1) * kStride + 3>([&](auto j) __attribute__((always_inline)) {
      load_wide_column<kWhole, kRows == 1>(tables, columns + j, work.span, work.channel, parts);
      for_constants<kRows * kCount>([&](auto i) __attribute__((always_inline)) {
        constexpr int kRow = i / kCount, kPixel = i % kCount, kx = j - kPixel * kStride;
        if constexpr (kx >= 0 && kx < 3) {
          const std::int64_t at = (kRow * 3 + kx) * 128 * (kSummands == 0 ? work.summands : kSummands);
          add_wide_column<kSummands>(parts, work.weights + at, work.summands, sums[kRow][kPixel]);
        }
      });
    });
  } else {
    static_assert(kRows == 1 && kCount == 1);
    for (std::int64_t kx = 0; kx < work.window; ++kx) {
      const std::uint8_t* const* column = work.columns + x * work.stride + kx * work.dilation;
      for (std::int64_t group = 0; group < work.row_groups; ++group) {
        load_wide_column<kWhole, false>(tables, column + 4 * group * work.span, work.span, work.channel, parts);
        add_wide_column<kSummands>(parts, work.weights + work.weights_of(0, kx, group), work.summands, sums[0][0]);
      }
    }
  }
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    finish_wide<kCount, TileColumns<2, false>, kSigned, kPlain>(
        {work.scaling, work.slot, work.channels, work.output + x * work.pixel_stride + row * work.row_stride,
         work.pixel_stride},
        sums[row], [&](int pixel, int column) { fix_wide_result(work, x + pixel, row, column); });
  });
}

template <int kRows, int kStride, int kSummands, bool kWhole, bool kSigned, bool kPlain>
void wide_row_of(const WideRowWork& work, std::int64_t pixels) {
  std::int64_t x = 0;
  if constexpr (kStride != 0) {
    for (; x + kWidePixels <= pixels; x += kWidePixels) {
      wide_pixels<kRows, kWidePixels, kStride, kSummands, kWhole, kSigned, kPlain>(work, x);
    }
  }
  for (; x < pixels; ++x) wide_pixels<kRows, 1, kStride, kSummands, kWhole, kSigned, kPlain>(work, x);
}

template <int kSummands, bool kWhole, bool kSigned, bool kPlain>
void wide_rows(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  const bool is_three_by_three = work.has_three_rows && work.dilation == 1 && work.window == 3;
  if (rows == 2 && is_three_by_three && work.stride == 1) {
    wide_row_of<2, 1, kSummands, kWhole, kSigned, kPlain>(work, pixels);
  } else if (is_three_by_three && work.stride == 1) {
    wide_row_of<1, 1, kSummands, kWhole, kSigned, kPlain>(work, pixels);
  } else if (is_three_by_three && work.stride == 2) {
    wide_row_of<1, 2, kSummands, kWhole, kSigned, kPlain>(work, pixels);
  } else {
    wide_row_of<1, 0, kSummands, kWhole, kSigned, kPlain>(work, pixels);
  }
}

template <bool kWhole, bool kSigned, bool kPlain>
void wide_rows(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  work.summands == 1 ? wide_rows<1, kWhole, kSigned, kPlain>(work, rows, pixels)
                     : wide_rows<0, kWhole, kSigned, kPlain>(work, rows, pixels);
}

// `rows`: 1, or 2 with weights for both. Blocks of fewer channels and odd scalings are rare: one version serves them.
void depthwise_wide_rows(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  const bool is_plain = work.scaling->is_plain;
  if (work.channels != kDepthwiseBlock) {
    work.is_signed ? wide_rows<false, true, false>(work, rows, pixels)
                   : wide_rows<false, false, false>(work, rows, pixels);
  } else if (work.is_signed) {
    is_plain ? wide_rows<true, true, true>(work, rows, pixels) : wide_rows<true, true, false>(work, rows, pixels);
  } else {
    is_plain ? wide_rows<true, false, true>(work, rows, pixels) : wide_rows<true, false, false>(work, rows, pixels);
  }
}
