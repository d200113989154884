// SPDX-License-Identifier: Apache-2.0
// Windows of 3 by 3 that move by 1 or 2, on vectors of 64 bytes: what networks have most. Four rows of the image,
// interleaved, serve two rows of outputs where windows move by one. Weights and scaling stay in registers as far as
// they reach; rows outside of the image are read from a line of zero points, columns outside only at the edges. No
// include guard: it is included once per target, see simd/targets.h.

#include "kernels/matmul/byte_finish_body.h"

// Bytes of 16 channels of four rows, one row after the other and 32 channels each, to groups of four per channel.
alignas(64) constexpr std::uint8_t kInterleaveLow[64] = {
    0,  32,  64, 96,  1,  33,  65, 97,  2,  34,  66, 98,  3,  35,  67, 99,  4,  36,  68, 100, 5,  37,
    69, 101, 6,  38,  70, 102, 7,  39,  71, 103, 8,  40,  72, 104, 9,  41,  73, 105, 10, 42,  74, 106,
    11, 43,  75, 107, 12, 44,  76, 108, 13, 45,  77, 109, 14, 46,  78, 110, 15, 47,  79, 111};
alignas(64) constexpr std::uint8_t kInterleaveHigh[64] = {
    16, 48,  80, 112, 17, 49,  81, 113, 18, 50,  82, 114, 19, 51,  83, 115, 20, 52,  84, 116, 21, 53,
    85, 117, 22, 54,  86, 118, 23, 55,  87, 119, 24, 56,  88, 120, 25, 57,  89, 121, 26, 58,  90, 122,
    27, 59,  91, 123, 28, 60,  92, 124, 29, 61,  93, 125, 30, 62,  94, 126, 31, 63,  95, 127};

struct BlockWork {
  const std::uint8_t* image;             // the block's first channel of the first pixel
  std::int64_t width, height;            // of the image
  std::int64_t pixel_stride;             // bytes, of image and output
  std::int64_t line_stride, row_stride;  // bytes, of the image and of the output
  std::int64_t pad_left, pad_top;        // pixels
  std::int64_t stride;                   // 1 or 2, of both axes
  std::int64_t outputs;                  // of a row
  const std::uint8_t* outside;           // a line of the image, all zero points
  bool is_signed;
  const std::int8_t* weights;  // [output row][column][summand][64 bytes, twice]
  std::int64_t summands;
  const ByteScaling* scaling;
  std::int64_t slot, channel, channels;  // of the block
  std::uint8_t* output;                  // the block's first channel of the first row

  // Line `y` of the window of output row 0.
  const std::uint8_t* line(std::int64_t y) const {
    const std::int64_t in_y = y - pad_top;
    return in_y >= 0 && in_y < height ? image + in_y * line_stride : outside;
  }
  const std::uint8_t* at(const std::uint8_t* line, std::int64_t x) const {
    return x >= 0 && x < width ? line + x * pixel_stride : outside;
  }
};

// Results that floats cannot tell: their sums again, then the reference's function. `y`: the first row of outputs.
template <int kRows, int kCount>
[[gnu::noinline, gnu::cold]] void fix_block(const BlockWork& work, std::int64_t y, std::int64_t x,
                                            const Doubts<kRows * kCount, TileColumns<2, false>>& doubts) {
  const int flip = work.is_signed ? 0x80 : 0;
  fix_results(doubts, [&](int index, int column) {
    if (column >= work.channels) return;
    const int row = index / kCount, pixel = index % kCount;
    auto sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + column)]);
    for (int kx = 0; kx < 3; ++kx) {
      for (int i = 0; i < (kRows == 2 ? 4 : 3); ++i) {
        const std::int64_t in_x = (x + pixel) * work.stride + kx - work.pad_left;
        const int value = work.at(work.line(y * work.stride + i), in_x)[column] ^ flip;
        const std::int8_t* w = work.weights + (row * 3 + kx) * work.summands * 128 + column * 4 + i;
        for (std::int64_t part = 0; part < work.summands; ++part) {
          sum += static_cast<std::uint32_t>(value * w[part * 128]);
        }
      }
    }
    work.output[(y + row) * work.row_stride + (x + pixel) * work.pixel_stride + column] =
        exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
  });
}

// In assembler, so that the sums stay in the registers that they are in (see matmul/byte_tiles_body.h).
[[gnu::always_inline]] inline void add_four(__m512i& sums, __m512i x, __m512i weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(weights));
}

// Constants for a block of channels.
template <int kRows>
struct BlockConstants {
  FinishConstants finish;
  __m512i low, high, flip, start[2], weights[kRows * 3][2];
  __mmask32 mask;
};

template <int kRows, bool kMany>
[[gnu::always_inline]] inline BlockConstants<kRows> block_constants(const BlockWork& work) {
  BlockConstants<kRows> with;
  with.finish = finish_constants<TileColumns<2, false>>(*work.scaling, work.slot);
  with.low = _mm512_load_si512(kInterleaveLow);
  with.high = _mm512_load_si512(kInterleaveHigh);
  with.flip = _mm512_set1_epi8(work.is_signed ? static_cast<char>(0x80) : 0);
  with.start[0] = _mm512_loadu_si512(work.scaling->start.data() + work.slot);
  with.start[1] = _mm512_loadu_si512(work.scaling->start.data() + work.slot + kWideLanes);
  const std::int64_t step = (kMany ? work.summands : 1) * 128;
  for_constants<kRows * 3>([&](auto i) __attribute__((always_inline)) {
    with.weights[i][0] = _mm512_load_si512(work.weights + i * step);
    with.weights[i][1] = _mm512_load_si512(work.weights + i * step + 64);
  });
  with.mask = static_cast<__mmask32>((std::uint64_t{1} << work.channels) - 1);
  return with;
}

// Lines of the image that windows of a row of outputs, or two, read.
struct BlockLines {
  const std::uint8_t *first, *second, *third, *fourth;
};

// kCount outputs from (y, x) on, in kRows rows. kEdge: columns may be outside of the image. kMany: several summands per
// weight. kWhole: the block has 32 channels.
template <int kRows, int kCount, int kStride, bool kEdge, bool kMany, bool kWhole, bool kSigned, bool kPlain>
[[gnu::always_inline]] inline void block_pixels(const BlockWork& work, const BlockConstants<kRows>& with,
                                                const BlockLines& lines, std::int64_t step, std::int64_t y,
                                                std::int64_t x, std::uint8_t* to) {
  using Columns = TileColumns<2, false>;
  __m512i sums[kRows * kCount][2];
  for_constants<kRows * kCount>([&](auto i) __attribute__((always_inline)) {
    sums[i][0] = with.start[0];
    sums[i][1] = with.start[1];
  });
  const std::int64_t left = x * kStride - work.pad_left;
  for_constants<(kCount - 1) * kStride + 3>([&](auto j) __attribute__((always_inline)) {
    const auto load = [&](const std::uint8_t* line) __attribute__((always_inline)) {
      const std::uint8_t* from = kEdge ? work.at(line, left + j) : line + (left + j) * step;
      return kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                    : _mm256_maskz_loadu_epi8(with.mask, from);
    };
    __m512i upper = _mm512_inserti64x4(_mm512_zextsi256_si512(load(lines.first)), load(lines.second), 1);
    __m512i lower = _mm512_zextsi256_si512(load(lines.third));
    if constexpr (kRows == 2) lower = _mm512_inserti64x4(lower, load(lines.fourth), 1);
    if constexpr (kSigned) {
      upper = _mm512_xor_si512(upper, with.flip);
      lower = _mm512_xor_si512(lower, with.flip);
    }
    const __m512i parts[2] = {_mm512_permutex2var_epi8(upper, with.low, lower),
                              _mm512_permutex2var_epi8(upper, with.high, lower)};
    for_constants<kRows * kCount>([&](auto i) __attribute__((always_inline)) {
      constexpr int kx = j - i % kCount * kStride, kWeights = i / kCount * 3 + kx;
      if constexpr (kx >= 0 && kx < 3) {
        add_four(sums[i][0], parts[0], with.weights[kWeights][0]);
        add_four(sums[i][1], parts[1], with.weights[kWeights][1]);
        for (std::int64_t k = 1; kMany && k < work.summands; ++k) {
          const std::int8_t* more = work.weights + (kWeights * work.summands + k) * 128;
          add_four(sums[i][0], parts[0], _mm512_load_si512(more));
          add_four(sums[i][1], parts[1], _mm512_load_si512(more + 64));
        }
      }
    });
  });
  alignas(32) std::uint8_t part[kRows * kCount][32];
  Doubts<kRows * kCount, Columns> doubts;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    __m512i of_row[kCount][2];
    for_constants<kCount>([&](auto i) __attribute__((always_inline)) {
      of_row[i][0] = sums[row * kCount + i][0];
      of_row[i][1] = sums[row * kCount + i][1];
    });
    const auto found = finish_wide<kCount, Columns, kSigned, kPlain>(
        with.finish, of_row, kWhole ? to + row * work.row_stride : part[row * kCount], kWhole ? step : 32);
    for_constants<kCount>([&](auto i)
                              __attribute__((always_inline)) { doubts.masks[row * kCount + i] = found.masks[i]; });
    doubts.any = _kor_mask32(doubts.any, found.any);
  });
  for (int row = 0; !kWhole && row < kRows; ++row) {
    copy_rows(part[row * kCount], kCount, work.channels, to + row * work.row_stride, step);
  }
  if (doubts.any != 0) [[unlikely]]
    fix_block<kRows, kCount>(work, y, x, doubts);
}

// Rows of outputs from y_begin on, kRows at a time as long as there are as many; returns the first that is left.
template <int kRows, int kCount, int kStride, bool kMany, bool kWhole, bool kSigned, bool kPlain>
std::int64_t block_rows(const BlockWork& work, std::int64_t y_begin, std::int64_t y_end) {
  if (y_begin + kRows > y_end) return y_begin;
  const BlockConstants<kRows> with = block_constants<kRows, kMany>(work);
  const std::int64_t step = work.pixel_stride, outputs = work.outputs;
  // Outputs [inner, inner_end) touch no column outside.
  const std::int64_t inner = std::min((work.pad_left + kStride - 1) / kStride, outputs);
  const std::int64_t last = work.width + work.pad_left - 3;
  const std::int64_t inner_end = last < 0 ? inner : std::clamp(last / kStride + 1, inner, outputs);
  std::int64_t y = y_begin;
  for (; y + kRows <= y_end; y += kRows) {
    const std::int64_t top = y * kStride;
    const BlockLines lines{work.line(top), work.line(top + 1), work.line(top + 2), work.line(top + 3)};
    std::uint8_t* const to = work.output + y * work.row_stride;
    std::int64_t x = 0;
    for (; x < inner; ++x) {
      block_pixels<kRows, 1, kStride, true, kMany, kWhole, kSigned, kPlain>(work, with, lines, step, y, x,
                                                                            to + x * step);
    }
    for (; x + kCount <= inner_end; x += kCount) {
      block_pixels<kRows, kCount, kStride, false, kMany, kWhole, kSigned, kPlain>(work, with, lines, step, y, x,
                                                                                  to + x * step);
    }
    for (; x < outputs; ++x) {
      block_pixels<kRows, 1, kStride, true, kMany, kWhole, kSigned, kPlain>(work, with, lines, step, y, x,
                                                                            to + x * step);
    }
  }
  return y;
}

template <bool kMany, bool kWhole, bool kSigned, bool kPlain>
void block_rows(const BlockWork& work, std::int64_t y, std::int64_t y_end) {
  if (work.stride == 2) {
    block_rows<1, 4, 2, kMany, kWhole, kSigned, kPlain>(work, y, y_end);
  } else {
    y = block_rows<2, 2, 1, kMany, kWhole, kSigned, kPlain>(work, y, y_end);
    block_rows<1, 4, 1, kMany, kWhole, kSigned, kPlain>(work, y, y_end);
  }
}

// Rows [y_begin, y_end) of a block of channels of one image. What is rare shares a version.
void depthwise_3x3(const BlockWork& work, std::int64_t y_begin, std::int64_t y_end) {
  if (work.channels != kDepthwiseBlock) {
    work.is_signed ? block_rows<true, false, true, false>(work, y_begin, y_end)
                   : block_rows<true, false, false, false>(work, y_begin, y_end);
  } else if (work.summands > 1) {
    work.is_signed ? block_rows<true, true, true, false>(work, y_begin, y_end)
                   : block_rows<true, true, false, false>(work, y_begin, y_end);
  } else if (work.is_signed) {
    work.scaling->is_plain ? block_rows<false, true, true, true>(work, y_begin, y_end)
                           : block_rows<false, true, true, false>(work, y_begin, y_end);
  } else {
    work.scaling->is_plain ? block_rows<false, true, false, true>(work, y_begin, y_end)
                           : block_rows<false, true, false, false>(work, y_begin, y_end);
  }
}
