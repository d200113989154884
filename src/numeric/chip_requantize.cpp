// SPDX-License-Identifier: Apache-2.0
// Every intermediate is a named float: the order of roundings is the content of this file, and naming keeps it visible.
#include "numeric/chip_requantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reef::numeric {
namespace {

constexpr std::int64_t kMaxAddWeight = 32767;

bool is_scale(float scale) { return std::isfinite(scale) && scale > 0; }
bool is_byte(std::int32_t value) { return value >= 0 && value <= 255; }

}  // namespace

float chip_layer_multiplier(float input_scale, float weight_scale, float output_scale) {
  const float inverse = 1.0f / output_scale;
  const float product = input_scale * weight_scale;
  return inverse * product;
}

float chip_rescale_multiplier(float input_scale, float output_scale) {
  const float inverse = 1.0f / output_scale;
  return inverse * input_scale;
}

float chip_product_multiplier(float a_scale, float b_scale, float output_scale) {
  return chip_layer_multiplier(a_scale, b_scale, output_scale);
}

float chip_constant_product_multiplier(float input_scale, float constant_scale, std::int32_t constant_minus_zero_point,
                                       float output_scale) {
  const float constant = constant_scale * static_cast<float>(constant_minus_zero_point);
  return chip_layer_multiplier(input_scale, constant, output_scale);
}

std::optional<std::int32_t> chip_constant_bias(std::int32_t constant_minus_zero_point, float constant_scale,
                                               float input_scale) {
  if (!is_scale(constant_scale) || !is_scale(input_scale)) return std::nullopt;
  const double real = constant_minus_zero_point * static_cast<double>(constant_scale);
  const double units = std::nearbyint(real / static_cast<double>(input_scale));
  if (!(std::fabs(units) < 2147483648.0)) return std::nullopt;
  return static_cast<std::int32_t>(units);
}

ChipClamp chip_clamp(float scale, std::int32_t zero_point, ChipActivation activation) {
  const float inverse = 1.0f / scale;
  float real_max = static_cast<float>(255 - zero_point) * scale;
  float real_min = static_cast<float>(-zero_point) * scale;
  if (activation == ChipActivation::kRelu || activation == ChipActivation::kRelu6) real_min = std::max(real_min, 0.0f);
  if (activation == ChipActivation::kRelu6) real_max = std::min(real_max, 6.0f);
  if (activation == ChipActivation::kReluN1To1) {
    real_max = std::min(real_max, 1.0f);
    real_min = std::max(real_min, -1.0f);
  }
  return {real_max * inverse, real_min * inverse};
}

float chip_pool_multiplier(float input_scale, float output_scale, std::int32_t count, ChipPoolOrder order) {
  const float part = 1.0f / static_cast<float>(count);
  const float inverse = 1.0f / output_scale;
  if (order == ChipPoolOrder::kCountLast) {
    const float ratio = input_scale * inverse;
    return part * ratio;
  }
  const float mean_scale = input_scale * part;
  return inverse * mean_scale;
}

// The convergents of the continued fraction of `value` are the best approximations for their denominators; the last one
// within the limit competes with the one step towards the next that still is. std::fmod and the sign of std::fma are
// exact, so no rounding enters the choice. Same results as Python's Fraction(value).limit_denominator(max_denominator).
Fraction closest_fraction(double value, std::int64_t max_denominator) {
  Fraction before{0, 1}, last{1, 0};  // the two latest convergents; {1, 0} starts the recurrence
  double dividend = value, divisor = 1.0;
  while (divisor != 0) {
    const double remainder = std::fmod(dividend, divisor);
    const double quotient =
        std::nearbyint((dividend - remainder) / divisor);  // whole up to the rounding of the division
    if (last.denominator != 0 && quotient > static_cast<double>(max_denominator)) break;
    const auto whole = static_cast<std::int64_t>(quotient);
    const Fraction next{before.numerator + whole * last.numerator, before.denominator + whole * last.denominator};
    if (next.denominator > max_denominator) break;
    before = last;
    last = next;
    dividend = divisor;
    divisor = remainder;
  }
  if (divisor == 0) return last;
  const std::int64_t steps = (max_denominator - before.denominator) / last.denominator;
  const Fraction between{before.numerator + steps * last.numerator, before.denominator + steps * last.denominator};
  const bool last_is_closer = std::fma(2 * divisor, static_cast<double>(between.denominator), -1.0) <= 0;
  return last_is_closer ? last : between;
}

namespace {

std::optional<Fraction> first_whole_fraction(float smaller, float larger) {
  const float inverse = 1.0f / smaller;
  for (std::int64_t numerator = 1; numerator <= kMaxAddWeight; ++numerator) {
    const float counted = static_cast<float>(numerator) * inverse;
    const float denominator = counted * larger;
    if (denominator > static_cast<float>(kMaxAddWeight)) break;
    if (denominator == std::nearbyint(denominator)) return Fraction{numerator, static_cast<std::int64_t>(denominator)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChipAdd> chip_add(float a_scale, std::int32_t a_zero_point, float b_scale, std::int32_t b_zero_point,
                                float output_scale, ChipAddWeights weights) {
  if (!is_scale(a_scale) || !is_scale(b_scale) || !is_scale(output_scale)) return std::nullopt;
  if (!is_byte(a_zero_point) || !is_byte(b_zero_point)) return std::nullopt;
  const bool a_is_larger = a_scale >= b_scale;
  const float larger = a_is_larger ? a_scale : b_scale;
  const float smaller = a_is_larger ? b_scale : a_scale;
  const std::optional<Fraction> ratio =
      weights == ChipAddWeights::kFirstWhole
          ? first_whole_fraction(smaller, larger)
          : closest_fraction(static_cast<double>(smaller) / static_cast<double>(larger), kMaxAddWeight);
  if (!ratio) return std::nullopt;
  ChipAdd add;
  add.a_weight = static_cast<std::int32_t>(a_is_larger ? ratio->denominator : ratio->numerator);
  add.b_weight = static_cast<std::int32_t>(a_is_larger ? ratio->numerator : ratio->denominator);
  const float unit = larger / static_cast<float>(ratio->denominator);
  const float inverse = 1.0f / output_scale;
  add.multiplier = inverse * unit;
  add.offset = -(add.a_weight * a_zero_point + add.b_weight * b_zero_point);
  return add;
}

std::uint8_t chip_requantize(std::int32_t sum, float multiplier, ChipClamp clamp, std::int32_t zero_point) {
  const float scaled = static_cast<float>(sum) * multiplier;
  const float clamped = std::fmin(std::fmax(scaled, clamp.min), clamp.max);
  const float rounded = std::nearbyint(clamped);
  const float byte = std::fmin(std::fmax(rounded + static_cast<float>(zero_point), 0.0f), 255.0f);
  return static_cast<std::uint8_t>(byte);
}

}  // namespace reef::numeric
