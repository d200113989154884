// SPDX-License-Identifier: Apache-2.0
// For tests: random convolutions, small and odd in every respect that matters to fast kernels.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "kernels/conv/conv_shape.h"

namespace reef::kernels {

template <typename Random>
std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

template <typename Random>
ConvAxis random_axis(Random& random, bool pointwise) {
  ConvAxis axis;
  axis.input = pick(random, 1, 14);
  axis.window = pointwise ? 1 : pick(random, 1, 5);
  axis.stride = pick(random, 1, 3);
  axis.dilation = pointwise ? 1 : pick(random, 1, 2);
  axis.pad_before = pick(random, 0, 1) * pick(random, 0, (axis.window - 1) * axis.dilation);
  // At least one output; windows may reach beyond the far edge, and lie beyond it as a whole.
  axis.output = (axis.input + axis.pad_before + pick(random, 0, 3)) / axis.stride + 1;
  return axis;
}

template <typename Random>
ConvShape random_conv(Random& random) {
  ConvShape s;
  const bool pointwise = pick(random, 0, 2) == 0;
  s.batches = pick(random, 1, 2);
  s.groups = pick(random, 0, 3) == 0 ? pick(random, 2, 3) : 1;
  s.input_channels = s.groups * pick(random, 1, pick(random, 0, 1) == 0 ? 9 : 70);
  s.output_channels = s.groups * pick(random, 1, pick(random, 0, 1) == 0 ? 9 : 100);
  s.y = random_axis(random, pointwise);
  s.x = random_axis(random, pointwise);
  if (pointwise && pick(random, 0, 1) == 0) {
    s.y.stride = s.x.stride = 1;
    s.y.output = s.y.input;
    s.x.output = s.x.input;
  }
  return s;
}

// Convolutions in groups of few channels. Rows of a group may be as long, with their padding, as a pixel of all groups.
inline std::vector<ConvShape> grouped_convs() {
  std::vector<ConvShape> result;
  for (const std::int64_t groups : {2, 3, 4}) {
    for (std::int64_t inputs = 1; inputs <= 8; ++inputs) {
      for (const std::int64_t window : {1, 3}) {
        ConvShape s;
        s.batches = 2;
        s.groups = groups;
        s.input_channels = groups * inputs;
        s.output_channels = groups * (inputs + 6);
        s.x = s.y = {5, 6 - window, window, 1, 1, 0};
        result.push_back(s);
      }
    }
  }
  return result;
}

inline std::string text_of(const ConvShape& s) {
  const auto axis = [](const ConvAxis& a) {
    return std::to_string(a.input) + "->" + std::to_string(a.output) + " window " + std::to_string(a.window) +
           " stride " + std::to_string(a.stride) + " dilation " + std::to_string(a.dilation) + " pad " +
           std::to_string(a.pad_before);
  };
  return std::to_string(s.batches) + " x (" + axis(s.y) + ") x (" + axis(s.x) + "), channels " +
         std::to_string(s.input_channels) + "->" + std::to_string(s.output_channels) + " groups " +
         std::to_string(s.groups);
}

}  // namespace reef::kernels
