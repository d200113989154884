// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h for any window, on vectors of 64 bytes: 16 channels by four rows of a window. Comes after
// depthwise_3x3_body.h. No include guard: it is included once per target, see simd/targets.h.

struct WideRowWork {
  // Input bytes of the first channel of the image: [line][column], lines from the first that any window touches.
  const std::uint8_t* const* columns;
  std::int64_t span, row_span;  // entries from a row of the window to the next; from an output row to the next
  std::int64_t stride, dilation, window;  // columns
  std::int64_t row_groups;
  const std::int8_t* weights;  // of the block: [column][group of rows][summand][64 bytes, twice]
  std::int64_t summands;
  bool is_signed;
  const ByteScaling* scaling;
  std::int64_t slot;               // of the block in the scaling
  std::int64_t channel, channels;  // of the block: first, how many
  std::uint8_t* output;            // of the first pixel and the block's first channel
  std::int64_t pixel_stride, row_stride;
  std::int64_t last_rows;  // of the last group that have weights

  std::int64_t weights_of(std::int64_t kx, std::int64_t group) const {
    return (kx * row_groups + group) * summands * 128;
  }
};

// 32 channels of a row; fewer in the last block.
template <bool kWhole>
[[gnu::always_inline]] inline __m256i load_channels(const std::uint8_t* from, __mmask32 mask) {
  return kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)) : _mm256_maskz_loadu_epi8(mask, from);
}

// One result that floats cannot tell: its sum again, then the reference's function.
[[gnu::noinline, gnu::cold]] void fix_any_result(const WideRowWork& work, std::int64_t y, std::int64_t x,
                                                 std::int64_t column) {
  const int flip = work.is_signed ? 0x80 : 0;
  auto sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + column)]);
  for (std::int64_t kx = 0; kx < work.window; ++kx) {
    const std::uint8_t* const* at = work.columns + y * work.row_span + x * work.stride + kx * work.dilation;
    for (std::int64_t i = 0; i < 4 * work.row_groups; ++i) {
      const std::int8_t* w = work.weights + work.weights_of(kx, i / 4) + column * 4 + i % 4;
      const int value = at[i * work.span][work.channel + column] ^ flip;
      for (std::int64_t part = 0; part < work.summands; ++part) {
        sum += static_cast<std::uint32_t>(value * w[part * 128]);
      }
    }
  }
  work.output[y * work.row_stride + x * work.pixel_stride + column] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
}

// Constants for all pixels of a row.
struct WideTables {
  __m512i flip, low, high;
  __mmask32 mask;
};

// Four rows of one column, interleaved. `at`: of the first row in the table.
template <bool kWhole>
[[gnu::always_inline]] inline void load_wide_column(const WideTables& tables, const std::uint8_t* const* at,
                                                    std::int64_t span, std::int64_t channel, __m512i (&parts)[2]) {
  const auto load = [&](int row) __attribute__((always_inline)) {
    return load_channels<kWhole>(at[row * span] + channel, tables.mask);
  };
  const __m512i upper = _mm512_inserti64x4(_mm512_zextsi256_si512(load(0)), load(1), 1);
  const __m512i lower = _mm512_inserti64x4(_mm512_zextsi256_si512(load(2)), load(3), 1);
  const __m512i a = _mm512_xor_si512(upper, tables.flip), b = _mm512_xor_si512(lower, tables.flip);
  parts[0] = _mm512_permutex2var_epi8(a, tables.low, b);
  parts[1] = _mm512_permutex2var_epi8(a, tables.high, b);
}

template <bool kSigned>
[[gnu::always_inline]] inline WideTables wide_tables(const WideRowWork& work) {
  return {_mm512_set1_epi8(kSigned ? static_cast<char>(0x80) : 0), _mm512_load_si512(kInterleaveLow),
          _mm512_load_si512(kInterleaveHigh), static_cast<__mmask32>((std::uint64_t{1} << work.channels) - 1)};
}

// One pixel at a time.
template <bool kWhole, bool kSigned, bool kPlain>
void any_window(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  using Columns = TileColumns<2, false>;
  const WideTables tables = wide_tables<kSigned>(work);
  const FinishConstants with = finish_constants<Columns>(*work.scaling, work.slot);
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  for (std::int64_t y = 0, x = 0; y < rows; x = x + 1 < pixels ? x + 1 : 0, y += x == 0 ? 1 : 0) {
    __m512i sums[1][2] = {{_mm512_loadu_si512(start), _mm512_loadu_si512(start + kWideLanes)}};
    const std::int8_t* weights = work.weights;
    for (std::int64_t kx = 0; kx < work.window; ++kx) {
      const std::uint8_t* const* column = work.columns + y * work.row_span + x * work.stride + kx * work.dilation;
      for (std::int64_t group = 0; group < work.row_groups; ++group) {
        __m512i parts[2];
        load_wide_column<kWhole>(tables, column + 4 * group * work.span, work.span, work.channel, parts);
        for (std::int64_t part = 0; part < work.summands; ++part, weights += 128) {
          add_four(sums[0][0], parts[0], _mm512_load_si512(weights));
          add_four(sums[0][1], parts[1], _mm512_load_si512(weights + 64));
        }
      }
    }
    alignas(32) std::uint8_t part[32];
    std::uint8_t* const to = work.output + y * work.row_stride + x * work.pixel_stride;
    const auto doubts = finish_wide<1, Columns, kSigned, kPlain>(with, sums, kWhole ? to : part, 32);
    if constexpr (!kWhole) copy_rows(part, 1, work.channels, to, 32);
    if (doubts.any != 0) [[unlikely]] {
      fix_results(doubts, [&](int, int column) {
        if (column < work.channels) fix_any_result(work, y, x, column);
      });
    }
  }
}

// A group of rows of kPixels neighbouring windows of kWindow columns: columns that they share are interleaved once.
// kSingle: the group has one row. weights: of the group's first column.
template <int kPixels, int kStride, int kWindow, bool kSingle>
[[gnu::always_inline]] inline void add_group(const WideRowWork& work, const WideTables& tables,
                                             const std::uint8_t* const* column, const std::int8_t* weights,
                                             __m512i (&sums)[kPixels][2]) {
  const std::int64_t next = work.row_groups * 128;  // from a column's weights to the next
  for_constants<(kPixels - 1) * kStride + kWindow>([&](auto j) __attribute__((always_inline)) {
    __m512i parts[2];
    if constexpr (kSingle) {
      const auto* from = reinterpret_cast<const __m128i*>(column[j] + work.channel);
      parts[0] = _mm512_xor_si512(_mm512_cvtepu8_epi32(_mm_loadu_si128(from)), tables.flip);
      parts[1] = _mm512_xor_si512(_mm512_cvtepu8_epi32(_mm_loadu_si128(from + 1)), tables.flip);
    } else {
      load_wide_column<true>(tables, column + j, work.span, work.channel, parts);
    }
    for_constants<kPixels>([&](auto p) __attribute__((always_inline)) {
      constexpr int kColumn = j - p * kStride;
      if constexpr (kColumn >= 0 && kColumn < kWindow) {
        const std::int8_t* const of_column = weights + kColumn * next;
        add_four(sums[p][0], parts[0], _mm512_load_si512(of_column));
        add_four(sums[p][1], parts[1], _mm512_load_si512(of_column + 64));
      }
    });
  });
}

template <int kPixels, int kStride, int kWindow, bool kSigned, bool kPlain>
[[gnu::always_inline]] inline void known_pixels(const WideRowWork& work, const WideTables& tables,
                                                const FinishConstants& with, std::int64_t y, std::int64_t x) {
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  __m512i sums[kPixels][2];
  for_constants<kPixels>([&](auto p) __attribute__((always_inline)) {
    sums[p][0] = _mm512_loadu_si512(start);
    sums[p][1] = _mm512_loadu_si512(start + kWideLanes);
  });
  const std::uint8_t* const* column = work.columns + y * work.row_span + x * kStride;
  const std::int64_t last = work.row_groups - 1, of_four = work.last_rows == 1 ? last : work.row_groups;
  for (std::int64_t g = 0; g < of_four; ++g) {
    add_group<kPixels, kStride, kWindow, false>(work, tables, column + 4 * g * work.span, work.weights + g * 128, sums);
  }
  if (of_four == last) {
    add_group<kPixels, kStride, kWindow, true>(work, tables, column + 4 * last * work.span, work.weights + last * 128,
                                               sums);
  }
  const auto doubts = finish_wide<kPixels, TileColumns<2, false>, kSigned, kPlain>(
      with, sums, work.output + y * work.row_stride + x * work.pixel_stride, work.pixel_stride);
  if (doubts.any != 0) [[unlikely]]
    fix_results(doubts, [&](int pixel, int channel) { fix_any_result(work, y, x + pixel, channel); });
}

// Windows whose columns are known when this is compiled, of 32 channels with one summand to a weight.
template <int kStride, int kWindow, bool kSigned, bool kPlain>
void known_window(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  constexpr int kPixels = 4;
  const WideTables tables = wide_tables<kSigned>(work);
  const FinishConstants with = finish_constants<TileColumns<2, false>>(*work.scaling, work.slot);
  for (std::int64_t y = 0; y < rows; ++y) {
    std::int64_t x = 0;
    for (; x + kPixels <= pixels; x += kPixels)
      known_pixels<kPixels, kStride, kWindow, kSigned, kPlain>(work, tables, with, y, x);
    for (; x < pixels; ++x) known_pixels<1, kStride, kWindow, kSigned, kPlain>(work, tables, with, y, x);
  }
}

// Whether there is such code.
template <bool kSigned, bool kPlain>
bool ran_known_window(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  const bool is_known = (work.window == 5 || work.window == 7) && work.stride <= 2;
  if (!is_known || work.dilation != 1 || work.summands != 1 || work.channels != kDepthwiseBlock) return false;
  if (work.window == 5) {
    work.stride == 1 ? known_window<1, 5, kSigned, kPlain>(work, rows, pixels)
                     : known_window<2, 5, kSigned, kPlain>(work, rows, pixels);
  } else {
    work.stride == 1 ? known_window<1, 7, kSigned, kPlain>(work, rows, pixels)
                     : known_window<2, 7, kSigned, kPlain>(work, rows, pixels);
  }
  return true;
}

// Blocks of fewer channels and odd scalings are rare: one version serves them.
void depthwise_any(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  const bool is_plain = work.scaling->is_plain;
  const bool is_done = work.is_signed ? (is_plain ? ran_known_window<true, true>(work, rows, pixels)
                                                  : ran_known_window<true, false>(work, rows, pixels))
                                      : (is_plain ? ran_known_window<false, true>(work, rows, pixels)
                                                  : ran_known_window<false, false>(work, rows, pixels));
  if (is_done) return;
  if (work.channels != kDepthwiseBlock) {
    work.is_signed ? any_window<false, true, false>(work, rows, pixels)
                   : any_window<false, false, false>(work, rows, pixels);
  } else if (work.is_signed) {
    is_plain ? any_window<true, true, true>(work, rows, pixels) : any_window<true, true, false>(work, rows, pixels);
  } else {
    is_plain ? any_window<true, false, true>(work, rows, pixels) : any_window<true, false, false>(work, rows, pixels);
  }
}
