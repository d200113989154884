// SPDX-License-Identifier: Apache-2.0
// Sizes of a 2-D convolution, and which part of a window lies inside the image.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reef::kernels {

// A range of window positions [begin, end) along one axis.
struct TapRange {
  std::int64_t begin = 0, end = 0;
};

struct ConvAxis {
  std::int64_t input = 0, output = 0, window = 1, stride = 1, dilation = 1, pad_before = 0;

  // Input coordinate of the window's first position for output `o`; may be negative.
  std::int64_t origin(std::int64_t o) const { return o * stride - pad_before; }
  bool is_pointwise() const { return window == 1 && stride == 1 && pad_before == 0 && output == input; }
  // Positions of the window that fall inside the image.
  TapRange inside(std::int64_t o) const {
    const std::int64_t start = origin(o);
    const std::int64_t begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    const std::int64_t end = start >= input ? 0 : (input - start + dilation - 1) / dilation;
    return {std::min(begin, window), std::max(std::min(end, window), std::min(begin, window))};
  }
};

struct ConvShape {
  std::int64_t batches = 0;
  std::int64_t input_channels = 0, output_channels = 0;
  std::int64_t groups = 1;  // channels are convolved in this many independent groups
  ConvAxis y, x;

  std::int64_t group_inputs() const { return input_channels / groups; }
  std::int64_t group_outputs() const { return output_channels / groups; }
  // Whether windows are the pixels themselves, in order.
  bool is_pointwise() const { return y.is_pointwise() && x.is_pointwise(); }
  std::int64_t taps() const { return y.window * x.window; }
  std::int64_t depth() const { return taps() * group_inputs(); }  // products per output
  std::int64_t output_rows() const { return batches * y.output; }
  std::int64_t output_pixels() const { return output_rows() * x.output; }
  std::int64_t input_batch_size() const { return y.input * x.input * input_channels; }
};

// Part of an output: pixels [x_begin, x_end) of row `row` of batches * y.output, channels [channel_begin, channel_end).
struct OutputBlock {
  std::int64_t row = 0;
  std::int64_t x_begin = 0, x_end = 0;
  std::int64_t channel_begin = 0, channel_end = 0;
};

}  // namespace reef::kernels
