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

// What is the same for all of a row's pixels.
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

// Blocks of fewer channels and odd scalings are rare: one version serves them.
void depthwise_any(const WideRowWork& work, std::int64_t rows, std::int64_t pixels) {
  const bool is_plain = work.scaling->is_plain;
  if (work.channels != kDepthwiseBlock) {
    work.is_signed ? any_window<false, true, false>(work, rows, pixels)
                   : any_window<false, false, false>(work, rows, pixels);
  } else if (work.is_signed) {
    is_plain ? any_window<true, true, true>(work, rows, pixels) : any_window<true, true, false>(work, rows, pixels);
  } else {
    is_plain ? any_window<true, false, true>(work, rows, pixels) : any_window<true, false, false>(work, rows, pixels);
  }
}
