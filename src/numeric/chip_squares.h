// SPDX-License-Identifier: Apache-2.0
// Constants of patterns that are our own: SQUARED_DIFFERENCE and L2_NORMALIZATION. No compiled program with either is
// known; the arithmetic is that of chip_requantize.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "numeric/chip_requantize.h"

namespace reef::numeric {

// The difference of two bytes in 16 bits, as large as these allow: p_a * (a - z_a) - p_b * (b - z_b), times
// difference_multiplier, rounded. Its square times square_multiplier is in units of the output's scale.
inline constexpr float kMostWideDifference = 32767;
inline constexpr std::int32_t kWideDifferenceZero = 32768;
struct ChipSquaredDifference {
  std::int32_t a_weight = 0, b_weight = 0;  // 0..32767, as in chip_add
  float difference_multiplier = 1;          // at most 1
  float square_multiplier = 1;
};
// nullopt: a scale is not a positive finite number, or a zero point is not the chip's (0..255).
inline std::optional<ChipSquaredDifference> chip_squared_difference(float a_scale, std::int32_t a_zero_point,
                                                                    float b_scale, std::int32_t b_zero_point,
                                                                    float output_scale) {
  if (!(output_scale > 0) || !std::isfinite(output_scale)) return std::nullopt;
  const auto add = chip_add(a_scale, a_zero_point, b_scale, b_zero_point, 1.0f);  // its multiplier is the sum's unit
  if (!add) return std::nullopt;
  ChipSquaredDifference numbers{add->a_weight, add->b_weight, 1, 1};
  const std::int32_t above = add->a_weight * (255 - a_zero_point) + add->b_weight * b_zero_point;
  const std::int32_t below = add->a_weight * a_zero_point + add->b_weight * (255 - b_zero_point);
  const auto most = static_cast<float>(std::max(above, below));
  if (most > kMostWideDifference) numbers.difference_multiplier = kMostWideDifference / most;
  const float unit = add->multiplier / numbers.difference_multiplier;
  numbers.square_multiplier = chip_product_multiplier(unit, unit, output_scale);
  return numbers;
}

// L2_NORMALIZATION: a sum of squares of less than kRootSplit has the root kCoarseRoot / sqrt, another kFineRoot / sqrt,
// rounded to 16 bits. A single unit for all sums would be too coarse for large ones, or overflow for small ones.
inline constexpr std::int32_t kRootSplit = 4096;
inline constexpr float kCoarseRoot = 65535.0f, kFineRoot = 64.0f * 65535.0f;
// The multiplier of a value times such a root.
inline float chip_root_multiplier(float one, float output_scale) { return (1.0f / output_scale) * (1.0f / one); }

}  // namespace reef::numeric
