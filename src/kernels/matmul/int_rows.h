// SPDX-License-Identifier: Apache-2.0
// Exact integer matrix products: every row of one matrix with every row of another.
//
// Both sides are widened to 16 bits with their zero points already subtracted, and rows are padded with zeros to a
// multiple of kRowPadding, so that the inner loop has no tail and maps to multiply-and-add-pairs instructions. Sums are
// exact: 32-bit partial sums over runs short enough not to overflow, added up in 64 bits. A caller that needs
// TFLite's 32-bit accumulator takes the low 32 bits, which is what wrapping addition gives.
#pragma once

#include <cstdint>
#include <vector>

namespace reef::kernels {

inline constexpr std::int64_t kRowPadding = 8;
inline std::int64_t padded_depth(std::int64_t depth) { return (depth + kRowPadding - 1) / kRowPadding * kRowPadding; }

// Longest runs whose sums fit 32 bits whatever the operands.
inline constexpr std::int64_t kRunOf8BitProducts = 32768;    // |a|, |b| <= 255
inline constexpr std::int64_t kRunOf16By8BitProducts = 256;  // |a| <= 32768, |b| <= 128
inline constexpr std::int64_t kRunOf16BitProducts = 0;       // no two fit: every product is added in 64 bits

struct PackedRows {
  std::int64_t rows = 0;
  std::int64_t depth = 0;   // numbers that count
  std::int64_t stride = 0;  // padded_depth(depth)
  std::vector<std::int16_t> values;

  PackedRows() = default;
  PackedRows(std::int64_t row_count, std::int64_t row_depth)
      : rows(row_count),
        depth(row_depth),
        stride(padded_depth(row_depth)),
        values(static_cast<std::size_t>(row_count * padded_depth(row_depth))) {}
  std::int16_t* row(std::int64_t i) { return values.data() + i * stride; }
  const std::int16_t* row(std::int64_t i) const { return values.data() + i * stride; }
};

// sums[r * sums_stride + c] += a_row(r) . b_row(c), over `depth` numbers (a multiple of kRowPadding). `run` is one of
// the constants above.
void add_row_products(const std::int16_t* a, std::int64_t a_stride, std::int64_t rows, const std::int16_t* b,
                      std::int64_t b_stride, std::int64_t columns, std::int64_t depth, std::int64_t run,
                      std::int64_t* sums, std::int64_t sums_stride);

// target[i] = source[i] - zero_point. The difference must fit 16 bits.
template <typename T>
void widen(const T* source, std::int64_t count, std::int32_t zero_point, std::int16_t* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<std::int16_t>(source[i] - zero_point);
}

}  // namespace reef::kernels
