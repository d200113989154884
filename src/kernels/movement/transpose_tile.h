// SPDX-License-Identifier: Apache-2.0
// Transposing a matrix of elements of 1, 2, 4 or 8 bytes, in tiles of vectors of 16 bytes.
//
// Element by element, either reading or writing touches another line of the cache every time. A tile of N by N
// elements, N of them a vector, is turned over in registers: interleaving row i with row i + N/2, log2 N times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace reef::kernels {

inline constexpr std::int64_t kTileVectorBytes = 16;

template <typename Element>
struct TransposeTile {
  static constexpr int kSize = kTileVectorBytes / static_cast<int>(sizeof(Element));
  using Vec [[gnu::vector_size(16)]] = Element;

  // Elements of a and b in turn, from the first or from the second half of both.
  template <int kFirst, std::size_t... I>
  static void interleave(const Vec& a, const Vec& b, Vec& result, std::index_sequence<I...>) {
    result = __builtin_shufflevector(a, b, (kFirst + static_cast<int>(I) / 2 + (I % 2 ? kSize : 0))...);
  }

  // to[r][c] = from[c][r]; strides in bytes.
  static void run(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
    constexpr auto kAll = std::make_index_sequence<static_cast<std::size_t>(kSize)>();
    Vec rows[kSize], next[kSize];
    for (int i = 0; i < kSize; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof(Vec));
#pragma GCC unroll 4
    for (int round = 1; round < kSize; round *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < kSize / 2; ++i) {
        interleave<0>(rows[i], rows[i + kSize / 2], next[2 * i], kAll);
        interleave<kSize / 2>(rows[i], rows[i + kSize / 2], next[2 * i + 1], kAll);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kSize; ++i) rows[i] = next[i];
    }
    for (int i = 0; i < kSize; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof(Vec));
  }
};

// to[r][c] = from[c][r] for r < rows, c < columns. Strides, in bytes, are those between the c of `from` and the r of
// `to`. As many c as make a line of the cache are done for all r before the next: few places are read at a time, each
// further and further, and lines are written as a whole. Tiles at the ends overlap the ones before.
template <typename Element>
void transpose(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns) {
  using Tile = TransposeTile<Element>;
  constexpr std::int64_t kSize = Tile::kSize, kBytes = sizeof(Element), kTogether = 64 / kBytes;
  if (rows < kSize || columns < kSize) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c)
        std::memcpy(to + r * to_stride + c * kBytes, from + c * from_stride + r * kBytes, sizeof(Element));
    }
    return;
  }
  for (std::int64_t block = 0; block < columns; block += kTogether) {
    const std::int64_t end = std::min(block + kTogether, columns);
    for (std::int64_t row = 0; row < rows; row += kSize) {
      const std::int64_t r = std::min(row, rows - kSize);
      for (std::int64_t column = block; column < end; column += kSize) {
        const std::int64_t c = std::min(column, columns - kSize);
        Tile::run(from + c * from_stride + r * kBytes, from_stride, to + r * to_stride + c * kBytes, to_stride);
      }
    }
  }
}

}  // namespace reef::kernels
