// SPDX-License-Identifier: Apache-2.0
// A panel's work on some rows, for tile loops that say what a RowElement is. No include guard: it is included once per
// target, see simd/targets.h.

struct TileWork {
  const RowElement* const* starts;  // per row: its first element
  std::int64_t lines, line_stride;  // a row's lines: how many, elements from one to the next
  std::int64_t steps;               // groups of products of a line
  const std::int32_t* row_terms;    // per row, added to all its sums; null: none
  const std::int8_t* panel;
  const ByteScaling* scaling;
  std::int64_t channel, columns;  // first of the panel; how many there are
  std::int64_t slot;              // of the panel in the scaling; AVX-512: the channel
  std::uint8_t* output;           // of the first row and the panel's first column
  std::int64_t output_stride;
  bool is_signed;
  SplitSteps split;  // SSE4, AVX2: split weights
  bool has_lowest;   // the panel has weights of -128
  // Where sums are wanted instead of bytes, without what `scaling` has: of the first row and the panel's first column,
  // whole vectors of them.
  std::int32_t* sums;
  std::int64_t sums_stride;
  // AVX-512: weights of few columns one column after the other, of which a line takes `few_line` bytes; null: none.
  const std::int8_t* few;
  std::int64_t few_line;
};
