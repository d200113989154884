// SPDX-License-Identifier: Apache-2.0
// Models that scale pixels themselves: Keras' Rescaling and Normalization layers, and PyTorch modules that begin with
// (x - mean) / std. Such a model wants the pixels as they are, and scaling them once more ruins its answers.
//
// Followed is the way from the input over operators that move or convert values (CAST, TRANSPOSE, RESHAPE, PAD, RESIZE)
// and additions and multiplications by constants of one value or one each channel. What these make of the pixels' range
// tells what the input expects. Not seen: scaling that was folded into the first convolution, and the order of colours.
#pragma once

#include <optional>

#include "ir/model.h"

namespace reef::data {

enum class ExpectedPixels {
  kBytes,  // 0 to 255
  kUnit,   // 0 to 1
};

// nullopt: the model does not scale input `index`, or in a way that says nothing.
std::optional<ExpectedPixels> pixels_expected(const ir::Model& model, int index);

}  // namespace reef::data
