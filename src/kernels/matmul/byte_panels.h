// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products of 8-bit numbers, fast and exact: the same bits as conv/conv_int.h followed by
// matmul/requantize.h, which are the reference.
//
// A tile of several output pixels by several vectors of output channels stays in registers while the sum runs over the
// window. Windows are read line by line from lines of the image that were brought into a form that suits the
// multiplier; only windows with gaps (dilated, or a group of the channels) are copied into rows first. AVX-512 with
// VNNI multiplies unsigned by signed bytes, four at a time: int8 activations are raised by 128, and what that adds is
// taken off again with a constant per channel. AVX2 and SSE4 do the same in 16 bits where weights are small enough for
// that to be exact (byte_split.h); else they multiply 16-bit numbers, two at a time, and the activations' zero point is
// subtracted before. AVX-VNNI multiplies as AVX-512 does, on AVX2's vectors. 64-bit ARM multiplies signed bytes: uint8
// activations are lowered by 128. uint8 weights are stored less 128; what is left of their zero point is multiplied by
// the sum of the row. All of this is exact modulo 2^32, which is the arithmetic of the reference.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/byte_scaling.h"
#include "kernels/matmul/byte_split.h"
#include "kernels/simd/aligned.h"
#include "kernels/simd/targets.h"

namespace reef::kernels {

inline constexpr std::int64_t kMostFewColumns = 4;
inline constexpr std::int64_t kFewestFewProducts =
    16;  // of a sum; below, adding up lanes takes longer than what it saves

// Whether the active target has these kernels.
bool has_byte_panels();

// The parts of a panel of split weights beside its values.
struct SplitSteps {
  std::int64_t block_steps = 0;  // that are added up in 16 bits
  std::int64_t extra_steps = 0;
  const ExtraStep* extra = nullptr;
  const std::int8_t* extra_values = nullptr;
};

// Weights in panels: [matrix][panel][line][line_depth / group][column of the panel][group].
struct BytePanels {
  SimdTarget target = SimdTarget::kBaseline;
  std::int64_t matrices = 0, columns = 0;
  std::int64_t lines = 1, line_depth = 0;  // products of a sum: pieces that are read one after the other
  std::int64_t group = 4;                  // products that one instruction adds up
  std::int64_t lanes = 8;                  // columns of a vector
  std::int64_t panel_columns = 32;         // of all panels but the last
  bool in_turn = false;  // even columns of a whole panel are in its first vector, odd ones in its second
  AlignedVector<std::int8_t> values;
  // SSE4, AVX2: split weights (group is 4): steps of a block, 0 if weights are not split; extra steps of all panels,
  // where each panel's begin, and their values.
  std::int64_t block_steps = 0;
  std::vector<ExtraStep> extra_steps;
  std::vector<std::int64_t> extra_begins, extra_values_begins;
  AlignedVector<std::int8_t> extra_values;
  // AVX-512, at most kMostFewColumns columns: their weights once more, [matrix][column][line][few_line()], padded with
  // zeros.
  AlignedVector<std::int8_t> few;
  std::vector<std::int32_t> zero_points;  // of the values stored here, per panel of all matrices; mostly 0
  std::vector<std::uint8_t> has_lowest;   // per panel: whether it holds -128, which ARM without dot products minds
  std::vector<std::int32_t> sums;         // per column of all matrices, of the values stored, modulo 2^32
  std::vector<float> magnitudes;          // per column, of |value - zero point|

  BytePanels() = default;
  // For the active target and this convolution: sizes alone; then pack().
  explicit BytePanels(const ConvShape& s);
  // With has_sums convolve_sums can be called, not convolve_bytes.
  // row(i, to) writes the depth() weights of output channel i, less their zero point: within [-255, 255], and at most
  // 255 apart from each other.
  void pack(const std::function<void(std::int64_t, std::int16_t*)>& row, bool has_sums = false);

  std::int64_t depth() const { return lines * line_depth; }
  std::int64_t line_steps() const { return (line_depth + group - 1) / group; }
  std::int64_t padded_depth() const { return lines * line_steps() * group; }
  std::int64_t padded_columns() const { return (columns + lanes - 1) / lanes * lanes; }
  std::int64_t panels() const { return (columns + panel_columns - 1) / panel_columns; }
  std::int64_t width(std::int64_t panel) const {
    return std::min(panel_columns, padded_columns() - panel * panel_columns);
  }
  const std::int8_t* panel(std::int64_t matrix, std::int64_t index) const {
    return values.data() + (matrix * padded_columns() + index * panel_columns) * padded_depth();
  }
  // Where a column lies within its panel.
  std::int64_t place_in_panel(std::int64_t column) const {
    const std::int64_t place = column % panel_columns;
    const bool is_in_turn = in_turn && width(column / panel_columns) == panel_columns;
    return is_in_turn ? place % 2 * lanes + place / 2 : place;
  }
  // Where a panel's scaling begins: it is in the order of the sums in vectors. In turn: every panel has slots of its
  // own.
  std::int64_t panel_slot(std::int64_t matrix, std::int64_t index) const {
    return (in_turn ? matrix * panels() * panel_columns : matrix * columns) + index * panel_columns;
  }
  // More than there are columns: vectors of the last panel may read beyond them.
  std::int64_t slots() const {
    return in_turn ? matrices * panels() * panel_columns : matrices * columns + panel_columns;
  }
  std::int32_t zero_point(std::int64_t matrix, std::int64_t index) const {
    return zero_points[static_cast<std::size_t>(matrix * panels() + index)];
  }
  std::int64_t few_line() const { return (line_depth + 63) / 64 * 64; }
  const std::int8_t* few_columns(std::int64_t matrix) const {
    return few.empty() ? nullptr : few.data() + matrix * columns * lines * few_line();
  }
  SplitSteps split(std::int64_t matrix, std::int64_t index) const {
    if (block_steps == 0) return {};
    const std::int64_t panel = matrix * panels() + index, begin = extra_begins[static_cast<std::size_t>(panel)];
    const std::int64_t count = extra_begins[static_cast<std::size_t>(panel + 1)] - begin;
    const std::int64_t before = extra_values_begins[static_cast<std::size_t>(panel)];
    return {block_steps, count, extra_steps.data() + begin, extra_values.data() + before};
  }

 private:
  void choose_split(const std::function<void(std::int64_t, std::int16_t*)>& row);
  void add_split(std::int64_t matrix, std::int64_t index, const std::int16_t* rows);
  void add_sums(std::int64_t matrix, std::int64_t column, const std::int16_t* from);
  void set_column(std::int64_t matrix, std::int64_t column, const std::int16_t* from);
};

// The number that stands for a zero in the rows that tiles multiply. T is the activations' type: int8_t or uint8_t.
template <typename T>
std::int32_t zero_in_rows(const BytePanels& weights, std::int32_t zero_point) {
  if (includes(weights.target, SimdTarget::kNeon)) return zero_point - (std::is_signed_v<T> ? 0 : 128);
  // x86: unsigned bytes where four products are added up at a time, else 16-bit numbers less the zero point.
  return weights.group == 2 ? 0 : zero_point + (std::is_signed_v<T> ? 128 : 0);
}

// T is int8_t or uint8_t: the type of the activations. `bias` is null or has one number per channel.
template <typename T>
ByteScaling byte_scaling(const BytePanels& weights, const std::shared_ptr<const Requantizer>& exact,
                         const std::int64_t* bias, std::int32_t input_zero_point);

// Output pixels [pixel_begin, pixel_end), counted over all batches, and panels [panel_begin, panel_end) of group
// `group`. T: int8_t or uint8_t, of input and output.
template <typename T>
void convolve_bytes(const ConvShape& s, const T* input, std::int32_t input_zero_point, const BytePanels& weights,
                    std::int64_t group, const ByteScaling& scaling, std::int64_t pixel_begin, std::int64_t pixel_end,
                    std::int64_t panel_begin, std::int64_t panel_end, T* output);

// The exact sums of (x - input zero point) * weight, modulo 2^32, of all channels: that of output pixel p and channel c
// is sums[(p - pixel_begin) * weights.padded_columns() + c]. One group, weights packed with has_sums and within
// [-128, 127].
template <typename T>
void convolve_sums(const ConvShape& s, const T* input, std::int32_t input_zero_point, const BytePanels& weights,
                   std::int64_t pixel_begin, std::int64_t pixel_end, std::int32_t* sums);

}  // namespace reef::kernels
