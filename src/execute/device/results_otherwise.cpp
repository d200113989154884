// SPDX-License-Identifier: Apache-2.0
#include "execute/device/results_otherwise.h"

#include <algorithm>
#include <cmath>

namespace reef::device {

bool is_about_results(Belief belief) {
  switch (belief) {
    case Belief::kHalfToEven:
    case Belief::kNearest:
    case Belief::kFloatProduct:
    case Belief::kSumSaturates:
    case Belief::kZeroAfterRounding:
    case Belief::kClampBeforeTable:
    case Belief::kBreakIncluded:
    case Belief::kHornerFloat:
      return true;
    default:
      return false;
  }
}

std::int32_t ResultsOtherwise::whole(std::int32_t sum, std::int64_t cell) const {
  if (sums_are_whole) return sum;
  const std::int64_t exact = std::int64_t{sum} + rule.constant + rule.biases[cell];
  if (doubted == Belief::kSumSaturates) return static_cast<std::int32_t>(static_cast<std::uint32_t>(exact));
  return numeric::chip_saturate(std::int64_t{numeric::chip_saturate(std::int64_t{sum} + rule.constant)} +
                                rule.biases[cell]);
}

double ResultsOtherwise::in_table(double x) const {
  const bool is_exact = doubted == Belief::kHornerFloat;
  if (!is_exact && doubted != Belief::kBreakIncluded) return table->at(static_cast<float>(x));
  std::size_t segment = 0;
  const auto is_behind = [&](float at) { return doubted == Belief::kBreakIncluded ? x > at : x >= at; };
  while (segment < table->breaks.size() && is_behind(table->breaks[segment])) ++segment;
  const auto& coefficients = table->segments[segment];
  double y = coefficients[4];
  for (int power = 3; power >= 0; --power) {
    y = y * x + coefficients[reef::at(power)];
    if (!is_exact) y = static_cast<float>(y);
  }
  return y;
}

double ResultsOtherwise::through_table(double scaled) const {
  const auto limited = [&](double value) { return std::min<double>(std::max<double>(value, op.min), op.max); };
  if (!op.activation) return limited(scaled);
  if (op.reciprocal_root) return numeric::chip_reciprocal_root(*table, static_cast<float>(scaled));
  const double x = doubted == Belief::kClampBeforeTable ? scaled : limited(scaled);
  double y = 0;
  if (!op.odd_symmetry) {
    y = in_table(x);
  } else if (x != 0) {
    y = std::copysign(1.0, x) * in_table(std::fabs(x));
  }
  return doubted == Belief::kClampBeforeTable ? limited(y) : y;
}

std::int32_t ResultsOtherwise::rounded(double value) const {
  if (doubted == Belief::kZeroAfterRounding) value += op.out_zero;
  double whole = std::nearbyint(value);
  if (doubted == Belief::kHalfToEven) whole = std::round(value);
  if (doubted == Belief::kNearest) whole = std::trunc(value);
  if (doubted != Belief::kZeroAfterRounding) whole += op.out_zero;
  if (!(whole > 0)) return 0;
  return whole >= rule.limit ? rule.limit : static_cast<std::int32_t>(whole);
}

std::int32_t ResultsOtherwise::result(std::int32_t sum, std::int64_t cell) const {
  const auto number = static_cast<float>(whole(sum, cell));
  const double scaled = doubted == Belief::kFloatProduct
                            ? static_cast<double>(number) * static_cast<double>(rule.scales[cell])
                            : static_cast<double>(number * rule.scales[cell]);
  return rounded(through_table(scaled));
}

}  // namespace reef::device
