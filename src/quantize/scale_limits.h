// SPDX-License-Identifier: Apache-2.0
// Scales that a file may have, and ranges that are kept from leaving them.
//
// A scale outside [1e-12, 1e6] is always a mistake: a mask or a padding constant that got into a range, or numbers that
// no 8-bit model can tell from zero. Such a file would load and compute nonsense, so none is written.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

inline constexpr double kSmallestScale = 1e-12, kLargestScale = 1e6;
// Of activations: leaves room for the scale of a bias, which is the product of this and the weights'.
inline constexpr double kSmallestActivationScale = 1e-10;
// Of what SOFTMAX reads. TFLite needs more than 2^-26, and steps this small change no result.
inline constexpr double kSmallestSoftmaxScale = 0x1p-20;

// An error that names the first tensor of the model with a scale that is not a number inside the limits.
Status check_scales(const ir::Model& model);

// The range, widened about zero to `scale` a step where it is narrower; a range of nothing but zero stays as it is.
Range at_least(const Range& range, double scale);

}  // namespace reef::quantize
