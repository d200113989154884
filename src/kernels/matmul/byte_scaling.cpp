// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/byte_scaling.h"

#include <algorithm>
#include <cmath>

#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

struct RealFactor {
  double factor = 0;
  double nudge = 0;  // how far the second rounding moves one half
  int left = 0;      // places by which the reference shifts a sum before it multiplies, in 32 bits
};

RealFactor real_factor(const Requantizer& exact, std::size_t channel) {
  const std::size_t entry = exact.factors.size() == 1 ? 0 : channel;
  if (exact.rounding == Rounding::kReal32) return {exact.factors[entry], 0.0, 0};
  const numeric::Multiplier multiplier = exact.multipliers[entry];
  return {std::ldexp(static_cast<double>(multiplier.mantissa), multiplier.shift - 31),
          multiplier.shift < 0 ? std::ldexp(1.0, multiplier.shift - 1) : 0.0, std::max(multiplier.shift, 0)};
}

}  // namespace

bool suits_byte_scaling(const Requantizer& q) {
  if (q.rounding == Rounding::kReal32) {
    constexpr double kLargestFactor = 1e6;  // far from where floats end
    return std::all_of(q.factors.begin(), q.factors.end(),
                       [](double factor) { return factor >= 0 && factor <= kLargestFactor; });
  }
  return q.rounding == Rounding::kFixedPoint32 &&
         std::all_of(q.multipliers.begin(), q.multipliers.end(),
                     [](const numeric::Multiplier& multiplier) { return multiplier.mantissa >= 0; });
}

ByteScaling make_byte_scaling(const std::shared_ptr<const Requantizer>& exact, const std::vector<ChannelSums>& channels,
                              std::int64_t slots) {
  constexpr double kUnit = 1 << kPlaces;
  const auto size = static_cast<std::size_t>(slots);
  ByteScaling result;
  result.exact = exact;
  result.start.resize(size);
  result.factor.resize(size);
  result.above.resize(size, 1.0f + kSurePlaces);
  result.below.resize(size, 1.0f + kSurePlaces);
  const double half = exact->zero_point + 0.5;
  bool are_rounded_alike = true, are_small = true;
  for (const ChannelSums& channel : channels) {
    const RealFactor real = real_factor(*exact, static_cast<std::size_t>(channel.channel));
    const auto slot = static_cast<std::size_t>(channel.slot);
    result.start[slot] = channel.start;
    // Where bits are lost, or an integer of 32 bits does not hold the result with its zero point, nothing is sure.
    constexpr double kTooLarge = 2147483648.0;
    const bool loses_bits = real.left > 0 && std::ldexp(channel.largest, real.left) >= kTooLarge;
    if (loses_bits || channel.largest * real.factor + 256 >= kTooLarge) {
      result.factor[slot] = result.above[slot] = result.below[slot] = 0;
      continue;
    }
    result.factor[slot] = static_cast<float>(real.factor * kUnit);
    result.above[slot] = static_cast<float>((half + real.nudge) * kUnit + kSlack);
    result.below[slot] = static_cast<float>((half - real.nudge) * kUnit + kSlack);
    are_rounded_alike = are_rounded_alike && real.nudge == 0;
    are_small = are_small && (channel.largest * real.factor + 256) * kUnit < kLargestScaled;
  }
  const bool has_all_bytes = exact->highest - exact->lowest == 255;
  result.is_plain = are_small && has_all_bytes && (exact->lowest >= exact->zero_point || are_rounded_alike);
  return result;
}

std::uint8_t exact_byte(const Requantizer& q, std::int32_t sum, std::int64_t channel) {
  const auto entry = static_cast<std::size_t>(q.factors.size() == 1 ? 0 : channel);
  const std::int32_t scaled = q.rounding == Rounding::kFixedPoint32
                                  ? scale_sum<Rounding::kFixedPoint32>(sum, q.multipliers[entry], q.factors[entry])
                                  : scale_sum<Rounding::kReal32>(sum, q.multipliers[entry], q.factors[entry]);
  return static_cast<std::uint8_t>(numeric::clamp(numeric::wrapping_add(scaled, q.zero_point), q.lowest, q.highest));
}

}  // namespace reef::kernels
