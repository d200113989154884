// SPDX-License-Identifier: Apache-2.0
// A convolution as a matrix product without a copy of its input: where the operands of each output pixel lie.
//
// A window is `runs` pieces of `length` consecutive elements. Usually a piece is one position of the window with all
// channels of its group, and positions outside the image point to a line of `outside` values. Over few channels
// (pictures) such pieces would be too short: there a piece is a line of the window, which lies in one piece in the
// image, too, and is copied only where the window reaches beyond the image. Where it does not (dilation, groups) the
// window is gathered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/conv/conv_shape.h"

namespace reef::kernels {

// The memory that WindowRows works in. Kept from call to call, it saves small layers the time of allocation.
template <typename T>
struct WindowMemory {
  std::vector<const T*> pointers, lines;
  std::vector<T> gathered, outside;
};

// Windows of a few output pixels. The pointers are valid until the next `load`.
template <typename T>
class WindowRows {
 public:
  // `outside`: what positions outside of the image count as. `few_channels`: fewer make pieces too short.
  WindowRows(const ConvShape& s, const T* input, T outside, std::int64_t few_channels, std::int64_t most_rows,
             WindowMemory<T>& memory)
      : s_(s),
        input_(input),
        outside_value_(outside),
        most_rows_(most_rows),
        memory_(memory),
        pointers_(memory.pointers),
        lines_(memory.lines),
        gathered_(memory.gathered),
        outside_(memory.outside) {
    const std::int64_t channels = s.group_inputs();
    const bool has_short_pieces = s.taps() > 1 && channels < few_channels;
    has_whole_lines_ = has_short_pieces && s.groups == 1 && s.x.dilation == 1;
    gathers_ = has_short_pieces && !has_whole_lines_;
    runs_ = gathers_ ? 1 : has_whole_lines_ ? s.y.window : s.taps();
    length_ = s.depth() / runs_;
    is_pointwise_ = s.is_pointwise();
    pointers_.resize(static_cast<std::size_t>(runs_ * most_rows));
    if (has_whole_lines_) {
      gathered_.resize(static_cast<std::size_t>(most_rows * s.depth()), outside);
      outside_.assign(static_cast<std::size_t>(length_), outside);
    } else if (gathers_) {
      row_stride_ = length_ + kSlack;
      gathered_.resize(static_cast<std::size_t>(most_rows * row_stride_), outside);
    } else if (!is_pointwise_) {
      outside_.assign(static_cast<std::size_t>(channels), outside);
    }
  }

  ~WindowRows() {
    constexpr std::size_t kKeptElements = 1 << 18;
    if (pointers_.size() + gathered_.size() + outside_.size() > kKeptElements) memory_ = {};
  }
  WindowRows(const WindowRows&) = delete;
  WindowRows& operator=(const WindowRows&) = delete;

  std::int64_t runs() const { return runs_; }
  std::int64_t length() const { return length_; }
  // Pointer of run t and row r: rows()[t * row_capacity() + r].
  const T* const* rows() const { return pointers_.data(); }
  std::int64_t row_capacity() const { return most_rows_; }

  // Output pixels [first, first + count), operands of group `group`.
  void load(std::int64_t first, std::int64_t count, std::int64_t group) {
    const T* group_input = input_ + group * s_.group_inputs();
    lines_row_ = -1;
    if (is_pointwise_) {
      for (std::int64_t r = 0; r < count; ++r) {
        pointers_[static_cast<std::size_t>(r)] = group_input + (first + r) * s_.input_channels;
      }
      return;
    }
    std::int64_t x = first % s_.x.output, row = first / s_.x.output;
    for (std::int64_t r = 0; r < count; ++r) {
      if (has_whole_lines_) {
        point_to_lines(group_input, row, x, r);
      } else if (gathers_) {
        gather(group_input, row, x, r);
      } else {
        point(group_input, row, x, r);
      }
      if (++x == s_.x.output) {
        x = 0;
        ++row;
      }
    }
  }

 private:
  static constexpr std::int64_t kSlack =
      16 / static_cast<std::int64_t>(sizeof(T));  // elements written too far by copies

  void point(const T* group_input, std::int64_t row, std::int64_t x, std::int64_t r) {
    const std::int64_t out_y = row % s_.y.output;
    const T* image = group_input + row / s_.y.output * s_.input_batch_size();
    const T** to = pointers_.data() + r;
    const std::int64_t y0 = s_.y.origin(out_y), x0 = s_.x.origin(x);
    for (std::int64_t ky = 0; ky < s_.y.window; ++ky) {
      const std::int64_t in_y = y0 + ky * s_.y.dilation;
      const bool is_in = in_y >= 0 && in_y < s_.y.input;
      const T* line = image + in_y * s_.x.input * s_.input_channels;
      for (std::int64_t kx = 0; kx < s_.x.window; ++kx, to += most_rows_) {
        const std::int64_t in_x = x0 + kx * s_.x.dilation;
        *to = is_in && in_x >= 0 && in_x < s_.x.input ? line + in_x * s_.input_channels : outside_.data();
      }
    }
  }

  void point_to_lines(const T* group_input, std::int64_t row, std::int64_t x, std::int64_t r) {
    if (row != lines_row_) find_lines(group_input, row);
    const std::int64_t x0 = s_.x.origin(x), channels = s_.input_channels;
    const bool is_inside = x0 >= 0 && x0 + s_.x.window <= s_.x.input;
    for (std::int64_t ky = 0; ky < runs_; ++ky) {
      const T* line = lines_[static_cast<std::size_t>(ky)];
      const T*& pointer = pointers_[static_cast<std::size_t>(ky * most_rows_ + r)];
      if (line == nullptr || is_inside) {
        pointer = line == nullptr ? outside_.data() : line + x0 * channels;
        continue;
      }
      T* to = gathered_.data() + (r * runs_ + ky) * length_;
      const TapRange xs = s_.x.inside(x);
      std::fill(to, to + length_, outside_value_);
      if (xs.begin < xs.end) {
        std::copy_n(line + (x0 + xs.begin) * channels, (xs.end - xs.begin) * channels, to + xs.begin * channels);
      }
      pointer = to;
    }
  }

  void gather(const T* group_input, std::int64_t row, std::int64_t x, std::int64_t r) {
    const std::int64_t channels = s_.group_inputs(), line_length = s_.x.window * channels, x0 = s_.x.origin(x);
    T* to = gathered_.data() + r * row_stride_;
    pointers_[static_cast<std::size_t>(r)] = to;
    if (row != lines_row_) find_lines(group_input, row);
    const bool is_inside = x0 >= 0 && x0 + (s_.x.window - 1) * s_.x.dilation < s_.x.input;
    const TapRange xs = is_inside ? TapRange{0, s_.x.window} : s_.x.inside(x);
    const T* end = input_ + s_.batches * s_.input_batch_size();
    for (std::int64_t ky = 0; ky < s_.y.window; ++ky, to += line_length) {
      const T* line = lines_[static_cast<std::size_t>(ky)];
      if (line == nullptr || xs.begin == xs.end) {
        std::fill(to, to + line_length, outside_value_);
        continue;
      }
      const auto at = [&](std::int64_t kx) { return line + (x0 + kx * s_.x.dilation) * s_.input_channels; };
      std::fill(to, to + xs.begin * channels, outside_value_);
      for (std::int64_t kx = xs.begin; kx < xs.end; ++kx) copy(to + kx * channels, at(kx), channels, end);
      std::fill(to + xs.end * channels, to + line_length, outside_value_);
    }
  }

  // The lines of the image that the windows of output row `row` cover; null: outside.
  void find_lines(const T* group_input, std::int64_t row) {
    const T* image = group_input + row / s_.y.output * s_.input_batch_size();
    lines_.resize(static_cast<std::size_t>(s_.y.window));
    for (std::int64_t ky = 0; ky < s_.y.window; ++ky) {
      const std::int64_t in_y = s_.y.origin(row % s_.y.output) + ky * s_.y.dilation;
      lines_[static_cast<std::size_t>(ky)] =
          in_y >= 0 && in_y < s_.y.input ? image + in_y * s_.x.input * s_.input_channels : nullptr;
    }
    lines_row_ = row;
  }

  // Copies in pieces of 16 bytes, up to kSlack elements too many, where that stays below `end`.
  static void copy(T* to, const T* from, std::int64_t count, const T* end) {
    if (end - from < count + kSlack) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
      return;
    }
    for (std::int64_t i = 0; i < count; i += kSlack) std::memcpy(to + i, from + i, 16);
  }

  const ConvShape& s_;
  const T* input_;
  T outside_value_;
  std::int64_t most_rows_, runs_ = 1, length_ = 0, row_stride_ = 0;
  bool gathers_ = false, has_whole_lines_ = false, is_pointwise_ = false;
  std::int64_t lines_row_ = -1;  // output row that lines_ belong to
  WindowMemory<T>& memory_;
  std::vector<const T*>&pointers_, &lines_;
  std::vector<T>&gathered_, &outside_;
};

}  // namespace reef::kernels
