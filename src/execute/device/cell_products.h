// SPDX-License-Identifier: Apache-2.0
// Sums of products for many "cells" at once: the inner loop of the virtual tensor unit.
//
// A cell adds, over all steps, x0 * w0 + x1 * w1 for each pair of operands; all cells see the same x. Weights are
// packed so that the pairs of neighbouring cells are neighbours: one vector instruction multiplies and adds pairs for 4
// or 8 cells (pmaddwd).
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::device {

// Cells are padded to this many.
inline constexpr int kCellBlock = 4;
constexpr int padded_cells(int cells) { return (cells + kCellBlock - 1) / kCellBlock * kCellBlock; }

// weights: [pairs][padded cells][2]; inputs: [rows][pairs][2]; sums: [rows][padded cells], added to, wrapping.
// Operands must be within -255..255, so that no pair overflows.
void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums);

// The same in plain code, for comparison.
void add_cell_products_reference(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                                 std::ptrdiff_t pairs, int cells, std::int32_t* sums);

// Four bytes of every cell at each step, as they lie in lines of wide memory: lines[s] + 4 * cell.
// inputs: [rows][steps][4], within -255..255; sums[r][cell] += input * (byte - zeros[cell]).
void add_line_products(const std::uint8_t* const* lines, const std::int32_t* zeros, const std::int16_t* inputs,
                       std::ptrdiff_t rows, std::ptrdiff_t steps, int cells, std::int32_t* sums);
void add_line_products_reference(const std::uint8_t* const* lines, const std::int32_t* zeros,
                                 const std::int16_t* inputs, std::ptrdiff_t rows, std::ptrdiff_t steps, int cells,
                                 std::int32_t* sums);

// For operands of any size: weights: [operands][padded cells]; inputs: [rows][operands]. Products wrap, too.
void add_wide_products(const std::int32_t* weights, const std::int32_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t operands, int cells, std::int32_t* sums);
void add_wide_products_reference(const std::int32_t* weights, const std::int32_t* inputs, std::ptrdiff_t rows,
                                 std::ptrdiff_t operands, int cells, std::int32_t* sums);

}  // namespace reef::device
