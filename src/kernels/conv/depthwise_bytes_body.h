// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h for SSE4 and AVX2: 8 or 16 channels at a time, a part of a block. Bytes become 16-bit numbers
// as they are loaded; those of two rows of a window are interleaved, and one instruction multiplies them and adds the
// two products of a channel. Where windows of 3 by 3 move by 1, dilated or not, four rows of the image are interleaved
// for two rows of outputs: the lower one's weights are those of the upper one, moved by one place. No include guard: it
// is included between brackets, see simd/targets.h.

#include "kernels/matmul/byte_scaling_body.h"

constexpr int kPart = kVectorBytes / 2;  // channels
// Weights of a part's channels of four rows of a column: [upper, lower two rows][vector, twice].
constexpr int kTapBytes = 4 * kVectorBytes;

struct PartWork {
  // Input bytes of the first channel of the image: [row of the window, 4 * row_groups][column], columns from the first
  // that any window touches.
  const std::uint8_t* const* columns;
  std::int64_t lines, row_lines;  // entries from a row of the window to the next; from an output row to the next
  std::int64_t stride, dilation, window;  // columns
  std::int64_t window_rows, row_groups;
  const std::int8_t* weights;
  bool is_signed;
  const ByteScaling* scaling;
  std::int64_t slot;               // in the scaling
  std::int64_t channel, channels;  // first, how many: at most kPart
  std::uint8_t* output;            // of the first row and pixel, and the first channel
  std::int64_t output_stride, output_row_stride;
};

// How a part's bytes are loaded and stored: as they are; with 16 channels as two pieces of 8, which overlap; or one by
// one.
enum class Access { kWhole, kPieces, kFew };

template <bool kSigned, Access kAccess>
[[gnu::always_inline]] inline Ints load_channels(const PartWork& work, const std::uint8_t* image) {
  const std::uint8_t* const from = image + work.channel;
  if constexpr (kAccess == Access::kWhole) {
    return widened_bytes<kSigned>(from);
  } else if constexpr (kAccess == Access::kPieces) {
    const __m128i bytes =
        _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)),
                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + work.channels - 8)));
    return kSigned ? REEF_MM(cvtepi8_epi16)(bytes) : REEF_MM(cvtepu8_epi16)(bytes);
  } else {
    alignas(16) std::uint8_t few[kPart] = {};
    std::memcpy(few, from, static_cast<std::size_t>(work.channels));
    return widened_bytes<kSigned>(few);
  }
}

// The first kPart of 16 bytes.
template <Access kAccess>
[[gnu::always_inline]] inline void store_channels(__m128i bytes, std::int64_t channels, std::uint8_t* to) {
  if constexpr (kAccess == Access::kWhole) {
    store_half(to, bytes);
  } else if constexpr (kAccess == Access::kPieces) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + channels - 8), _mm_unpackhi_epi64(bytes, bytes));
  } else {
    alignas(16) std::uint8_t few[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(few), bytes);
    std::memcpy(to, few, static_cast<std::size_t>(channels));
  }
}

// kRows rows of one column, interleaved: [upper, lower two][channels 0 to 3 (and 8 to 11); the others]. A row that is
// not there counts nothing: its weights are 0.
template <int kRows, bool kSigned, Access kAccess>
[[gnu::always_inline]] inline void load_column(const PartWork& work, const std::uint8_t* const* at,
                                               Ints (&parts)[2][2]) {
  const Ints r0 = load_channels<kSigned, kAccess>(work, at[0]);
  const Ints r1 = load_channels<kSigned, kAccess>(work, at[work.lines]);
  parts[0][0] = REEF_MM(unpacklo_epi16)(r0, r1);
  parts[0][1] = REEF_MM(unpackhi_epi16)(r0, r1);
  const Ints r2 = load_channels<kSigned, kAccess>(work, at[2 * work.lines]);
  const Ints r3 = kRows == 3 ? r2 : load_channels<kSigned, kAccess>(work, at[3 * work.lines]);
  parts[1][0] = REEF_MM(unpacklo_epi16)(r2, r3);
  parts[1][1] = REEF_MM(unpackhi_epi16)(r2, r3);
}

// In assembler, so that every product is added at once: gcc 12 would first compute all of them and keep some in memory.
[[gnu::always_inline]] inline void add_products(Ints values, const Ints& weights, Ints& sums) {
  Ints product;
#if REEF_VECTOR_BYTES == 32
  asm("vpmaddwd %[weights], %[values], %[product]\n\t"
      "vpaddd %[product], %[sums], %[sums]"
#else
  asm("movdqa %[values], %[product]\n\t"
      "pmaddwd %[weights], %[product]\n\t"
      "paddd %[product], %[sums]"
#endif
      : [sums] "+x"(sums), [product] "=&x"(product)
      : [weights] "m"(weights), [values] "x"(values));
}
[[gnu::always_inline]] inline void add_column(const Ints (&parts)[2][2], const std::int8_t* weights, Ints (&sums)[2]) {
  const auto* w = reinterpret_cast<const Ints*>(weights);
  for_constants<4>([&](auto i)
                       __attribute__((always_inline)) { add_products(parts[i / 2][i % 2], w[i], sums[i % 2]); });
}

// Which of the channels' bytes word `word` of two vectors taken in turn is.
inline int byte_of_word(int word) { return word / 8 * 8 + word % 2 * 4 + word % 8 / 2; }

// One result that floats cannot tell: its sum again, then the reference's function.
void fix_result(const PartWork& work, std::int64_t row, std::int64_t x, int word) {
  const int byte = byte_of_word(word);
  const bool is_second_piece = work.channels < kPart && work.channels >= 8 && byte >= 8;
  const std::int64_t channel = is_second_piece ? work.channels - kPart + byte : byte;
  if (channel >= work.channels) return;
  const int in_vectors = word % 2 * kLanes + word / 2;  // which of the sums
  auto sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + in_vectors)]);
  for (std::int64_t kx = 0; kx < work.window; ++kx) {
    for (std::int64_t ky = 0; ky < work.window_rows; ++ky) {
      const std::uint8_t input = work.columns[row * work.row_lines + ky * work.lines + x * work.stride +
                                              kx * work.dilation][work.channel + channel];
      std::int16_t weight;
      const std::int8_t* const tap = work.weights + (kx * work.row_groups + ky / 4) * kTapBytes;
      std::memcpy(&weight, tap + ky % 4 / 2 * (kTapBytes / 2) + in_vectors * 4 + ky % 2 * 2, sizeof weight);
      sum += static_cast<std::uint32_t>((work.is_signed ? static_cast<std::int8_t>(input) : int{input}) * weight);
    }
  }
  work.output[row * work.output_row_stride + x * work.output_stride + channel] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + channel);
}

template <int kRows, int kPixels>
[[gnu::noinline, gnu::cold]] void fix_pixels(const PartWork& work, std::int64_t row, std::int64_t x, std::int64_t step,
                                             const Places<kRows * kPixels>& places) {
  for (int i = 0; i < kRows * kPixels; ++i) {
    for (int word = 0; word < 2 * kLanes; ++word) {
      if (places.values[i][word] >= kSurePlaces) continue;
      fix_result(work, row + i / kPixels * step, x + i % kPixels * step, word);
    }
  }
}

// Sums of kRows rows of kPixels pixels to bytes; rows and pixels are `step` apart.
template <int kRows, int kPixels, bool kSigned, bool kPlain, Access kAccess>
[[gnu::always_inline]] inline void finish_pixels(const PartWork& work, std::int64_t row, std::int64_t x,
                                                 std::int64_t step, const Ints (&sums)[kRows * kPixels][2]) {
  constexpr int kCount = kRows * kPixels;
  const ScaleVectors by[2] = {load_scale(*work.scaling, work.slot), load_scale(*work.scaling, work.slot + kLanes)};
  const ByteLimits limits = load_limits(*work.scaling);
  std::uint8_t* const to = work.output + row * work.output_row_stride + x * work.output_stride;
  Places<kCount> places;
  const auto words_of = [&](auto index) __attribute__((always_inline)) {
    const Ints a = scale<kPlain>(sums[index][0], by[0]), b = scale<kPlain>(sums[index][1], by[1]);
    places.set(index, places_in_turn(a, b));
    return results_in_turn(a, b);
  };
  const auto place_of = [&](int index) __attribute__((always_inline)) {
    return to + step * (index / kPixels * work.output_row_stride + index % kPixels * work.output_stride);
  };
  for_constants<(kCount + 1) / 2>([&](auto pair) __attribute__((always_inline)) {
    constexpr int kFirst = 2 * pair, kSecond = std::min(kFirst + 1, kCount - 1);
    const Ints first = words_of(std::integral_constant<int, kFirst>());
    const Ints second = kFirst == kSecond ? first : words_of(std::integral_constant<int, kSecond>());
    const Ints bytes = packed_in_order(turns_undone(limited_bytes<kSigned, kPlain>(limits, first, second)));
    store_channels<kAccess>(first_half(bytes), work.channels, place_of(kFirst));
    if constexpr (kFirst != kSecond) store_channels<kAccess>(second_half(bytes), work.channels, place_of(kSecond));
  });
  if (!places.all_sure()) [[unlikely]]
    fix_pixels<kRows, kPixels>(work, row, x, step, places);
}

template <int kCount>
[[gnu::always_inline]] inline void load_starts(const PartWork& work, Ints (&sums)[kCount][2]) {
  const std::int32_t* const start = work.scaling->start.data() + work.slot;
  for_constants<2 * kCount>([&](auto i) __attribute__((always_inline)) {
    sums[i / 2][i % 2] = load_ints(start + i % 2 * kLanes);
  });
}

// Windows of 3 by 3: kPixels outputs from pixel `x` on, of row `row` and, if kRows is 2, another. kStride: of columns;
// 0 means 1 with dilation, where outputs that share inputs lie as far apart as these. weights: [row][column of the
// window].
template <int kRows, int kPixels, int kStride, bool kSigned, bool kPlain, Access kAccess>
[[gnu::always_inline]] inline void pixels_3x3(const PartWork& work, const std::int8_t* const (&weights)[2],
                                              std::int64_t row, std::int64_t x) {
  constexpr int kMove = std::max(kStride, 1);
  const std::int64_t step = kStride == 0 ? work.dilation : 1;
  Ints sums[kRows * kPixels][2];
  load_starts(work, sums);
  const std::uint8_t* const* column = work.columns + row * work.row_lines + x * kMove;
  for_constants<(kPixels - 1) * kMove + 3>([&](auto j) __attribute__((always_inline)) {
    Ints parts[2][2];
    load_column<kRows + 2, kSigned, kAccess>(work, column + j * step, parts);
    for_constants<kRows * kPixels>([&](auto i) __attribute__((always_inline)) {
      constexpr int kRow = i / kPixels, kTap = j - i % kPixels * kMove;
      if constexpr (kTap >= 0 && kTap < 3) add_column(parts, weights[kRow] + kTap * kTapBytes, sums[i]);
    });
  });
  finish_pixels<kRows, kPixels, kSigned, kPlain, kAccess>(work, row, x, step, sums);
}

// Work on neighbouring channels, done side by side: a line of the cache, 64 bytes, is read once for all of them.
constexpr int kMostWorks = 64 / kPart;
struct Works {
  PartWork parts[kMostWorks];
  int count = 0;
};
using Weights3x3 = const std::int8_t* [2];

template <int kRows, int kStride, bool kSigned, bool kPlain, Access kAccess>
void rows_3x3(const Works& works, const Weights3x3 (&weights)[kMostWorks], std::int64_t row, std::int64_t pixels) {
  const std::int64_t step = kStride == 0 ? works.parts[0].dilation : 1;
  for (std::int64_t phase = 0; phase < std::min(step, pixels); ++phase) {
    std::int64_t x = phase;
    for (; x + step < pixels; x += 2 * step) {
      for (int i = 0; i < works.count; ++i)
        pixels_3x3<kRows, 2, kStride, kSigned, kPlain, kAccess>(works.parts[i], weights[i], row, x);
    }
    if (x >= pixels) continue;
    for (int i = 0; i < works.count; ++i)
      pixels_3x3<kRows, 1, kStride, kSigned, kPlain, kAccess>(works.parts[i], weights[i], row, x);
  }
}

// Weights of 3 by 3, moved down by one row: (0, w0), (w1, w2) for (w0, w1), (w2, 0).
[[gnu::always_inline]] inline void move_weights_down(const std::int8_t* from, std::int8_t* to) {
  constexpr int kLower = kTapBytes / 2;  // where the lower two rows' are
  for (int i = 0; i < 3 * kTapBytes; i += kTapBytes) {
    for (int v = 0; v < kLower; v += kVectorBytes) {
      const Ints upper = load_ints(from + i + v);
      const Ints lower = load_ints(from + i + kLower + v);
      store_ints(to + i + v, REEF_MM(slli_epi32)(upper, 16));
      store_ints(to + i + kLower + v, REEF_MM(srli_epi32)(upper, 16) | REEF_MM(slli_epi32)(lower, 16));
    }
  }
}

// All rows; two at a time where they share inputs.
template <int kStride, bool kSigned, bool kPlain, Access kAccess>
void all_3x3(const Works& works, std::int64_t rows, std::int64_t pixels) {
  alignas(32) std::int8_t moved[kMostWorks][3 * kTapBytes];
  const PartWork& any = works.parts[0];
  const std::int64_t step = kStride == 0 ? any.dilation : 1;
  const bool has_pairs = kStride < 2 && any.lines == step * any.row_lines && rows > step;
  Weights3x3 weights[kMostWorks] = {};
  for (int i = 0; i < works.count; ++i) {
    weights[i][0] = works.parts[i].weights;
    weights[i][1] = moved[i];
    if (has_pairs) move_weights_down(works.parts[i].weights, moved[i]);
  }
  for (std::int64_t phase = 0; phase < std::min(step, rows); ++phase) {
    std::int64_t row = phase;
    for (; has_pairs && row + step < rows; row += 2 * step)
      rows_3x3<2, kStride, kSigned, kPlain, kAccess>(works, weights, row, pixels);
    for (; row < rows; row += step) rows_3x3<1, kStride, kSigned, kPlain, kAccess>(works, weights, row, pixels);
  }
}

// Windows of any size.
template <bool kSigned, bool kPlain, Access kAccess>
void any_window(const PartWork& work, std::int64_t rows, std::int64_t pixels) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t x = 0; x < pixels; ++x) {
      Ints sums[1][2], parts[2][2];
      load_starts(work, sums);
      for (std::int64_t kx = 0; kx < work.window; ++kx) {
        const std::uint8_t* const* column = work.columns + row * work.row_lines + x * work.stride + kx * work.dilation;
        for (std::int64_t g = 0; g < work.row_groups; ++g) {
          load_column<4, kSigned, kAccess>(work, column + 4 * g * work.lines, parts);
          add_column(parts, work.weights + (kx * work.row_groups + g) * kTapBytes, sums[0]);
        }
      }
      finish_pixels<1, 1, kSigned, kPlain, kAccess>(work, row, x, 1, sums);
    }
  }
}

template <bool kSigned, bool kPlain, Access kAccess>
void depthwise_of(const Works& works, std::int64_t rows, std::int64_t pixels) {
  const PartWork& any = works.parts[0];
  if (any.window_rows == 3 && any.window == 3) {
    if (any.dilation == 1 && any.stride == 1) return all_3x3<1, kSigned, kPlain, kAccess>(works, rows, pixels);
    if (any.dilation == 1 && any.stride == 2) return all_3x3<2, kSigned, kPlain, kAccess>(works, rows, pixels);
    if (any.stride == 1) return all_3x3<0, kSigned, kPlain, kAccess>(works, rows, pixels);
  }
  for (int i = 0; i < works.count; ++i) any_window<kSigned, kPlain, kAccess>(works.parts[i], rows, pixels);
}

template <bool kSigned, bool kPlain>
void depthwise_of(const Works& works, std::int64_t rows, std::int64_t pixels) {
  const std::int64_t channels = works.parts[0].channels;  // all have as many
  if (channels == kPart) return depthwise_of<kSigned, kPlain, Access::kWhole>(works, rows, pixels);
#if REEF_VECTOR_BYTES == 32
  if (channels >= 8) return depthwise_of<kSigned, kPlain, Access::kPieces>(works, rows, pixels);
#endif
  depthwise_of<kSigned, kPlain, Access::kFew>(works, rows, pixels);
}

void depthwise_rows(const Works& works, std::int64_t rows, std::int64_t pixels) {
  const bool is_plain = works.parts[0].scaling->is_plain;
  if (works.parts[0].is_signed) {
    is_plain ? depthwise_of<true, true>(works, rows, pixels) : depthwise_of<true, false>(works, rows, pixels);
  } else {
    is_plain ? depthwise_of<false, true>(works, rows, pixels) : depthwise_of<false, false>(works, rows, pixels);
  }
}
