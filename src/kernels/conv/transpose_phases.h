// SPDX-License-Identifier: Apache-2.0
// A transposed convolution as ordinary ones.
//
// Output pixels whose coordinates (padding included) leave the same rest when divided by the strides see the same
// positions of the window: one of stride_h * stride_w phases. Each phase is a convolution of stride 1 over the input,
// with every stride-th position of the window, in reverse. Phases of neighbouring columns that have the same positions
// are joined: their channels stand side by side in the output, so that one convolution with that many times the
// channels does them all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/conv/conv_shape.h"

namespace reef::kernels {

// One phase computes rows first_row, first_row + stride, ... of the output, and of each row `columns` neighbouring
// pixels from first_column on (which may be negative), then again a stride further.
struct TransposePhase {
  ConvShape conv;  // stride 1; pixels have the channels of `columns` output pixels
  std::int64_t row_rest = 0, column_rest = 0;
  std::int64_t first_row = 0, first_column = 0, columns = 1;
  bool has_positions = true;  // false: nothing is added here, outputs are the bias alone

  // Window position of the transposed convolution that position (y, x) of `conv` stands for, in the phase's column
  // `column`; -1 if there is none, which happens where phases with unlike positions are joined.
  std::int64_t position(const ConvShape& s, std::int64_t y, std::int64_t x, std::int64_t column) const {
    const std::int64_t ky = row_rest + (conv.y.window - 1 - y) * s.y.stride;
    const std::int64_t kx = column_rest + column + (conv.x.window - 1 - x) * s.x.stride;
    return ky < s.y.window && kx < s.x.window ? ky * s.x.window + kx : -1;
  }
};

namespace transpose_detail {

// Coordinates i >= 0 for which i * stride + rest + [0, count) - pad meets [0, output).
struct PhaseRange {
  std::int64_t begin = 0, end = 0;
};
inline PhaseRange phase_range(const ConvAxis& axis, std::int64_t rest, std::int64_t count) {
  const std::int64_t lowest = axis.pad_before - rest - count + 1, highest = axis.output - 1 + axis.pad_before - rest;
  const std::int64_t begin = lowest <= 0 ? 0 : (lowest + axis.stride - 1) / axis.stride;
  return {begin, highest < 0 ? begin : std::max(begin, highest / axis.stride + 1)};
}

inline ConvAxis phase_axis(const ConvAxis& axis, PhaseRange range, std::int64_t window) {
  const std::int64_t positions = std::max<std::int64_t>(window, 1);
  return {axis.input, range.end - range.begin, positions, 1, 1, positions - 1 - range.begin};
}

}  // namespace transpose_detail

// `joins_all`: phases of all columns are joined, though some lack a position, which then counts as a weight of 0.
inline std::vector<TransposePhase> transpose_phases(const ConvShape& s, bool joins_all) {
  std::vector<TransposePhase> phases;
  const auto positions = [](const ConvAxis& axis, std::int64_t rest) {
    return rest >= axis.window ? 0 : (axis.window - rest + axis.stride - 1) / axis.stride;
  };
  for (std::int64_t row_rest = 0; row_rest < s.y.stride; ++row_rest) {
    const std::int64_t high = positions(s.y, row_rest);
    for (std::int64_t rest = 0; rest < s.x.stride;) {
      const std::int64_t wide = positions(s.x, rest);
      std::int64_t columns = 1;
      while (rest + columns < s.x.stride && (joins_all || positions(s.x, rest + columns) == wide)) ++columns;
      const auto ys = transpose_detail::phase_range(s.y, row_rest, 1);
      const auto xs = transpose_detail::phase_range(s.x, rest, columns);
      TransposePhase phase;
      phase.conv = s;
      phase.conv.output_channels = s.output_channels * columns;
      phase.conv.y = transpose_detail::phase_axis(s.y, ys, high);
      phase.conv.x = transpose_detail::phase_axis(s.x, xs, wide);
      phase.row_rest = row_rest;
      phase.column_rest = rest;
      phase.first_row = ys.begin * s.y.stride + row_rest - s.y.pad_before;
      phase.first_column = xs.begin * s.x.stride + rest - s.x.pad_before;
      phase.columns = columns;
      phase.has_positions = high > 0 && wide > 0;
      rest += columns;
      if (phase.conv.y.output > 0 && phase.conv.x.output > 0) phases.push_back(phase);
    }
  }
  return phases;
}

// Rows [begin, end) of one image's phase as a convolution of their own, and where its input begins. 1x1 windows that
// lie within the image become those of the rows alone, which kernels read where they are.
template <typename T>
struct PhaseRows {
  ConvShape conv;
  const T* input;

  PhaseRows(const TransposePhase& phase, const T* image, std::int64_t begin, std::int64_t end)
      : conv(phase.conv), input(image) {
    conv.batches = 1;
    conv.y.output = end - begin;
    conv.y.pad_before -= begin;
    const std::int64_t first = -conv.y.pad_before;
    const bool is_inside = conv.taps() == 1 && first >= 0 && first + conv.y.output <= conv.y.input &&
                           conv.x.pad_before == 0 && conv.x.output == conv.x.input;
    if (!is_inside) return;
    input += first * conv.x.input * conv.input_channels;
    conv.y.input = conv.y.output;
    conv.y.pad_before = 0;
  }
};

// Puts row `row` of a phase, as its convolution left it, where it belongs in the image `output`.
template <typename T>
void place_phase_row(const ConvShape& s, const TransposePhase& phase, std::int64_t row, const T* from, T* output) {
  const std::int64_t channels = s.output_channels, pixels = phase.conv.x.output, width = phase.columns;
  T* to = output + (phase.first_row + row * s.y.stride) * s.x.output * channels;
  const auto copy = [&](std::int64_t x, const T* source, std::int64_t count) {
    const std::int64_t begin = std::max<std::int64_t>(x, 0), end = std::min(x + count, s.x.output);
    if (begin >= end) return;
    std::memcpy(to + begin * channels, source + (begin - x) * channels,
                static_cast<std::size_t>((end - begin) * channels) * sizeof(T));
  };
  if (width == s.x.stride) return copy(phase.first_column, from, pixels * width);
  for (std::int64_t i = 0; i < pixels; ++i)
    copy(phase.first_column + i * s.x.stride, from + i * width * channels, width);
}

}  // namespace reef::kernels
