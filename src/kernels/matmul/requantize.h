// SPDX-License-Identifier: Apache-2.0
// From exact integer sums to quantized outputs: bias, scaling, zero point, clamping.
#pragma once

#include <cstdint>
#include <vector>

#include "numeric/fixed_point.h"

namespace reef::kernels {

// How TFLite scales a sum down; kernels differ.
enum class Rounding {
  kFixedPoint32,  // 32-bit sums, which wrap, and 32-bit multipliers
  kFixedPoint48,  // 48-bit sums and 16-bit multipliers
  kReal32,        // 32-bit sums times a double, rounded once
  kReal64,        // 64-bit sums times a double, rounded once
};

struct Requantizer {
  Rounding rounding = Rounding::kFixedPoint32;
  std::vector<numeric::Multiplier> multipliers;  // one per channel, for the fixed-point kinds
  std::vector<double> factors;                   // one per channel, for the real kinds
  std::int32_t zero_point = 0, lowest = 0, highest = 0;

  // Channels share the factor in entry 0 when there is only one.
  void set_factors(Rounding kind, const std::vector<double>& real) {
    rounding = kind;
    factors = real;
    for (const double factor : real) multipliers.push_back(numeric::make_multiplier(factor));
  }
};

template <Rounding kRounding>
std::int32_t scale_sum(std::int64_t sum, numeric::Multiplier multiplier, double factor) {
  if constexpr (kRounding == Rounding::kFixedPoint32) {
    return numeric::multiply(static_cast<std::int32_t>(sum), multiplier);
  } else if constexpr (kRounding == Rounding::kFixedPoint48) {
    return numeric::multiply(sum, multiplier);
  } else if constexpr (kRounding == Rounding::kReal32) {
    return numeric::round_to_int32(static_cast<double>(static_cast<std::int32_t>(sum)) * factor);
  } else {
    return numeric::round_to_int32(static_cast<double>(sum) * factor);
  }
}

template <Rounding kRounding, typename Out>
void requantize_as(const Requantizer& q, const std::int64_t* sums, const std::int64_t* bias, std::int64_t first_channel,
                   std::int64_t count, Out* out) {
  const std::int64_t step = q.factors.size() == 1 ? 0 : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t channel = first_channel + i;
    const auto entry = static_cast<std::size_t>(channel * step);
    const auto added = static_cast<std::uint64_t>(bias != nullptr ? bias[channel] : 0);
    const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[i]) + added);
    const std::int32_t scaled = scale_sum<kRounding>(sum, q.multipliers[entry], q.factors[entry]);
    out[i] = static_cast<Out>(numeric::clamp(numeric::wrapping_add(scaled, q.zero_point), q.lowest, q.highest));
  }
}

// out[i] from sums[i] of channel first_channel + i. `bias` (null: none) is indexed by channel.
template <typename Out>
void requantize(const Requantizer& q, const std::int64_t* sums, const std::int64_t* bias, std::int64_t first_channel,
                std::int64_t count, Out* out) {
  switch (q.rounding) {
    case Rounding::kFixedPoint32:
      return requantize_as<Rounding::kFixedPoint32>(q, sums, bias, first_channel, count, out);
    case Rounding::kFixedPoint48:
      return requantize_as<Rounding::kFixedPoint48>(q, sums, bias, first_channel, count, out);
    case Rounding::kReal32:
      return requantize_as<Rounding::kReal32>(q, sums, bias, first_channel, count, out);
    case Rounding::kReal64:
      return requantize_as<Rounding::kReal64>(q, sums, bias, first_channel, count, out);
  }
}

}  // namespace reef::kernels
