// SPDX-License-Identifier: Apache-2.0
// What a Resize node asks for, for the two ways of converting it: with sizes known (resize.cpp) and with sizes that are
// an input of the model (open_resize.cpp).
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

// Before opset 11 nodes do not say which place is the nearest: the one below where an axis grows, the one above where
// it shrinks (ONNX's test resize_downsample_nearest of opset 10, and ONNX Runtime).
inline constexpr char kNearestOfOpset10[] = "opset 10";

struct ResizeMode {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool exclude_outside = false, antialias = false;
  bool rounds_sizes = false;  // align_corners: the result's size is a whole number
};

// Whether open_resize does what the node asks for.
bool can_resize_open(const NodeContext& ctx, const ResizeMode& m);

// `input` gives scales, or sizes, of all axes; they are known only while the model runs.
Status open_resize(NodeContext& ctx, const ResizeMode& m, int input, bool is_sizes);

}  // namespace reef::import
