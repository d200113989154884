// SPDX-License-Identifier: Apache-2.0
// Windows of convolutions and pools: sizes, strides, dilations and paddings of a node, whatever way it says them.
#pragma once

#include <string_view>
#include <vector>

#include "import/onnx/converter.h"

namespace reef::import {

// Along one spatial axis.
struct WindowAxis {
  std::int64_t input = 1, kernel = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  // elements of padding
  std::int64_t output = 1;

  std::int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // Padding at the end that windows actually touch; below 0: input that no window touches.
  std::int64_t touched_after() const { return (output - 1) * stride + reach() - input - before; }
};

using Window = std::vector<WindowAxis>;

// From attributes strides, dilations, pads, auto_pad and (pools) ceil_mode; `kernel` from the caller. `input`: sizes of
// the spatial axes.
Result<Window> read_window(const NodeContext& ctx, const Dims& input, const Dims& kernel);

// "SAME" or "VALID" if TFLite's rule gives these windows; empty: padding must be done by an operator of its own.
std::string_view tflite_padding(const Window& window);

// x [n, spatial..., c], padded so that windows without padding do the same.
Id padded(GraphBuilder& b, Id x, const Window& window, double value);

}  // namespace reef::import
