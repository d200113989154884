// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/byte_scaling.h"

#include <algorithm>
#include <cmath>

#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

constexpr int kFewestBits = 5;
constexpr double kLargest = 2147480000.0;  // below 2^31 by more than what sums of floats may be off

struct RealFactor {
  double factor = 0;
  double nudge = 0;  // how far the second rounding moves one half
};

// is_fast becomes false where floats cannot follow the reference.
RealFactor real_factor(const Requantizer& exact, std::size_t channel, bool& is_fast) {
  const std::size_t entry = exact.factors.size() == 1 ? 0 : channel;
  if (exact.rounding == Rounding::kReal32) {
    is_fast = is_fast && exact.factors[entry] >= 0;
    return {exact.factors[entry], 0.0};
  }
  const numeric::Multiplier multiplier = exact.multipliers[entry];
  is_fast = is_fast && multiplier.shift <= 0;
  return {std::ldexp(static_cast<double>(multiplier.mantissa), multiplier.shift - 31),
          multiplier.shift < 0 ? std::ldexp(1.0, multiplier.shift - 1) : 0.0};
}

}  // namespace

ByteScaling make_byte_scaling(const std::shared_ptr<const Requantizer>& exact, const std::vector<ChannelSums>& channels,
                              std::int64_t slots) {
  const auto size = static_cast<std::size_t>(slots);
  ByteScaling result;
  result.exact = exact;
  result.start.resize(size);
  result.factor.resize(size);
  result.above.resize(size, 1.0f + kSurePlaces);
  result.below.resize(size, 1.0f + kSurePlaces);
  std::vector<RealFactor> factors;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    factors.push_back(real_factor(*exact, static_cast<std::size_t>(channels[c].channel), result.is_fast));
    // Numbers times factor must fit 31 bits.
    const double largest = channels[c].largest * factors[c].factor + 256;
    while (result.bits >= kFewestBits && std::ldexp(largest, result.bits) > kLargest) --result.bits;
  }
  result.is_fast = result.is_fast && result.bits >= kFewestBits;
  const double unit = std::ldexp(1.0, result.bits), half = exact->zero_point + 0.5;
  result.is_one_sided = exact->lowest >= exact->zero_point;
  bool are_rounded_alike = true;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto slot = static_cast<std::size_t>(channels[c].slot);
    result.start[slot] = channels[c].start;
    result.factor[slot] = static_cast<float>(std::ldexp(factors[c].factor, result.bits));
    result.above[slot] = static_cast<float>((half + factors[c].nudge) * unit + kSlack);
    result.below[slot] = static_cast<float>((half - factors[c].nudge) * unit + kSlack);
    are_rounded_alike = are_rounded_alike && factors[c].nudge == 0;
  }
  result.is_one_sided = result.is_one_sided || are_rounded_alike;
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
