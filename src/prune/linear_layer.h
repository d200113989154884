// SPDX-License-Identifier: Apache-2.0
// Layers with constant float weights, as what they are to least squares: every result is a row of inputs times a
// matrix, plus a bias.
//
// A convolution's rows are the patches of its input, one for each pixel of its result; FULLY_CONNECTED's are the rows
// of its input. A layer in groups (grouped and depthwise convolutions) is several such systems side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/model.h"

namespace reef::prune {

struct LinearLayer {
  enum class Kind : std::uint8_t { kDense, kConvolution, kDepthwise, kTransposed };

  std::size_t op = 0;
  Kind kind = Kind::kDense;
  std::int32_t input = -1, weights = -1, bias = -1, output = -1;  // tensors; bias -1: none
  // Axes of the weights that count inputs and outputs.
  int input_axis = 0, output_axis = 0;
  std::size_t groups = 1;
  std::size_t inputs = 0, outputs = 0;  // channels of one group
  std::size_t window = 1;               // positions of the window
  std::size_t pixels = 0;               // rows of a sample

  std::size_t columns() const { return window * inputs; }  // numbers of a row
  // Column of input channel `channel` (of the group) at position `at` of the window.
  std::size_t column(std::size_t at, std::size_t channel) const { return at * inputs + channel; }

  // Writes row `pixel` of group `group`: columns() numbers of the sample's input.
  void fill_row(std::span<const float> x, std::size_t pixel, std::size_t group, float* row) const;
  // Number in the result of output `out` of the group at a pixel.
  std::size_t result_at(std::size_t pixel, std::size_t group, std::size_t out) const {
    return (pixel * groups + group) * outputs + out;
  }
  // Number in the weights tensor of the factor between a column and an output of a group.
  std::size_t weight_at(std::size_t group, std::size_t out, std::size_t column) const;

  // Geometry of convolutions.
  std::int32_t height = 1, width = 1, result_height = 1, result_width = 1, channels = 1;
  std::int32_t window_height = 1, window_width = 1, stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  std::int32_t pad_y = 0, pad_x = 0;
};

// The operator as such a layer; nullopt: it is none, its weights are not constant, or shapes are not known.
std::optional<LinearLayer> linear_layer(const ir::Model& model, std::size_t op);
std::vector<LinearLayer> linear_layers(const ir::Model& model);

}  // namespace reef::prune
