// SPDX-License-Identifier: Apache-2.0
#include "ir/model.h"

#include <algorithm>
#include <bit>

namespace reef::ir {
namespace {

// By bits: a NaN range read from a file equals itself, -0 differs from 0.
bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

}  // namespace

bool operator==(const Quantization& a, const Quantization& b) {
  return same_floats(a.scale, b.scale) && a.zero_point == b.zero_point && same_floats(a.min, b.min) &&
         same_floats(a.max, b.max) && a.dimension == b.dimension && a.details == b.details;
}

}  // namespace reef::ir
