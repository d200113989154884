// SPDX-License-Identifier: Apache-2.0
// A panel by all rows, for SSE4 and AVX2 in either form of the weights (byte_panels_body.h, byte_split_body.h): what
// surrounds multiply_tile. No include guard: it is included once per form, behind its multiply_tile.

// All rows: tiles of the usual number of rows, then one smaller.
template <int kVectors, bool kSigned, bool kPlain>
void multiply_rows(TileWork work, std::int64_t count) {
  constexpr int kMost = kTileRows<kVectors>;
  for (; count >= kMost; count -= kMost) {
    multiply_tile<kMost, kVectors, kSigned, kPlain>(work);
    work.starts += kMost;
    if (work.row_terms != nullptr) work.row_terms += kMost;
    work.output += kMost * work.output_stride;
  }
  for_constants<kMost - 1>([&](auto index) __attribute__((always_inline)) {
    if (count == index + 1) multiply_tile<index + 1, kVectors, kSigned, kPlain>(work);
  });
}

template <int kVectors>
void multiply_panel_of(const TileWork& work, std::int64_t count) {
  if (work.is_signed) {
    work.scaling->is_plain ? multiply_rows<kVectors, true, true>(work, count)
                           : multiply_rows<kVectors, true, false>(work, count);
  } else {
    work.scaling->is_plain ? multiply_rows<kVectors, false, true>(work, count)
                           : multiply_rows<kVectors, false, false>(work, count);
  }
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  vectors == 1 ? multiply_panel_of<1>(work, count) : multiply_panel_of<2>(work, count);
}
