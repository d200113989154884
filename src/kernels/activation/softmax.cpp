// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/elementwise/float_functions.h"
#include "numeric/fixed_point_math.h"
#include "numeric/half.h"

namespace reef::kernels {
namespace {

using numeric::Fixed;

constexpr int kDifferenceBits = 5;    // integer bits of scaled differences
constexpr int kAccumulatorBits = 12;  // integer bits of sums of exponentials
using Difference = Fixed<std::int32_t, kDifferenceBits>;
using Accumulator = Fixed<std::int32_t, kAccumulatorBits>;

// TFLite's QuantizeMultiplier, without the limit of 30 on the shift that make_multiplier sets: 31 occurs here.
numeric::Multiplier unlimited_multiplier(double real) {
  int shift = 0;
  auto mantissa =
      static_cast<std::int64_t>(std::round(std::frexp(real, &shift) * static_cast<double>(std::int64_t{1} << 31)));
  if (mantissa == (std::int64_t{1} << 31)) {
    mantissa /= 2;
    ++shift;
  }
  return {static_cast<std::int32_t>(mantissa), shift};
}

std::int32_t scale_difference(std::int32_t difference, const DifferenceScaling& scaling) {
  return numeric::saturating_rounding_doubling_high_mul(numeric::wrapping_shift_left(difference, scaling.left_shift),
                                                        scaling.multiplier);
}

// Exponentials of all possible differences of 8-bit numbers, so that a row costs two lookups an element.
struct ExponentialTable {
  explicit ExponentialTable(const DifferenceScaling& scaling) {
    for (std::int32_t difference = 0; difference >= -255 && difference >= scaling.minimum; --difference) {
      const Difference scaled = {scale_difference(difference, scaling)};
      values[static_cast<std::size_t>(-difference)] = numeric::exp_on_negative_values(scaled);
    }
  }
  Fixed<std::int32_t, 0> values[256];
};

template <typename T>
T row_maximum(const T* row, std::int64_t depth) {
  T maximum = std::numeric_limits<T>::lowest();
  for (std::int64_t c = 0; c < depth; ++c) maximum = std::max(maximum, row[c]);
  return maximum;
}

// The sum in Q12.19; nullopt if it does not fit.
template <typename T>
std::optional<Accumulator> sum_of_exponentials(const T* row, std::int64_t depth, std::int32_t maximum,
                                               std::int32_t minimum, const ExponentialTable& exponentials) {
  std::int64_t sum = 0;
  for (std::int64_t c = 0; c < depth; ++c) {
    const std::int32_t difference = row[c] - maximum;
    if (difference < minimum) continue;
    sum += numeric::rescale<kAccumulatorBits>(exponentials.values[-difference]).raw;
  }
  if (sum > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return Accumulator{static_cast<std::int32_t>(sum)};
}

}  // namespace

std::optional<DifferenceScaling> difference_scaling(double beta, double input_scale) {
  constexpr double kLargest = 2147483647.0;
  const double real = std::min(beta * input_scale * (1 << (31 - kDifferenceBits)), kLargest);
  if (!(real > 1.0)) return std::nullopt;
  const numeric::Multiplier factor = unlimited_multiplier(real);
  const double radius = 1.0 * ((1 << kDifferenceBits) - 1) * static_cast<double>(1LL << (31 - kDifferenceBits)) /
                        static_cast<double>(1LL << factor.shift);
  return DifferenceScaling{factor.mantissa, factor.shift, -static_cast<std::int32_t>(std::floor(radius))};
}

namespace {

constexpr std::int64_t kRowsTogether = 8;

// sums[r] = the sum of row r, from the first element to the last. Several rows at a time: in one, each addition waits
// for the last.
template <std::int64_t kRows>
void sum_rows(const float* rows, std::int64_t depth, float* sums) {
  std::fill_n(sums, kRows, 0.0f);
  for (std::int64_t c = 0; c < depth; ++c) {
    for (std::int64_t r = 0; r < kRows; ++r) sums[r] += rows[r * depth + c];
  }
}

}  // namespace

void softmax(const float* input, Rows rows, float beta, float* output) {
  for (std::int64_t begin = rows.begin, count = 0; begin < rows.end; begin += count) {
    count = rows.end - begin >= kRowsTogether ? kRowsTogether : 1;
    float* const outputs = output + begin * rows.depth;
    for (std::int64_t r = 0; r < count; ++r) {
      const float* in = input + (begin + r) * rows.depth;
      float* out = outputs + r * rows.depth;
      const float maximum = largest(in, rows.depth);
      for (std::int64_t c = 0; c < rows.depth; ++c) out[c] = (in[c] - maximum) * beta;
    }
    // exp is taken of negative numbers and 0; not so only if beta is negative.
    const std::int64_t elements = count * rows.depth;
    if (beta >= 0) {
      c_exponentials(outputs, elements, outputs);
    } else {
      for (std::int64_t c = 0; c < elements; ++c) outputs[c] = std::exp(outputs[c]);
    }
    float sums[kRowsTogether];
    count == 1 ? sum_rows<1>(outputs, rows.depth, sums) : sum_rows<kRowsTogether>(outputs, rows.depth, sums);
    for (std::int64_t r = 0; r < count; ++r) {
      float* out = outputs + r * rows.depth;
      const float sum = sums[r];
      for (std::int64_t c = 0; c < rows.depth; ++c) out[c] = out[c] / sum;
    }
  }
}

void softmax_half(const std::uint16_t* input, Rows rows, float beta, std::uint16_t* output) {
  using numeric::half_to_float;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::uint16_t* in = input + r * rows.depth;
    std::uint16_t* out = output + r * rows.depth;
    float maximum = -65504.0f;  // lowest half
    for (std::int64_t c = 0; c < rows.depth; ++c) maximum = std::max(maximum, half_to_float(in[c]));
    float sum = 0;
    for (std::int64_t c = 0; c < rows.depth; ++c) {
      const float exponential = std::exp((half_to_float(in[c]) - maximum) * beta);
      out[c] = numeric::float_to_half(exponential);
      sum += exponential;
    }
    for (std::int64_t c = 0; c < rows.depth; ++c) out[c] = numeric::float_to_half(half_to_float(out[c]) / sum);
  }
}

template <typename In, typename Out>
bool softmax_8bit(const In* input, Rows rows, const DifferenceScaling& scaling, Out* output) {
  constexpr std::int32_t kLowest = std::numeric_limits<Out>::min();
  const ExponentialTable exponentials(scaling);
  bool fits = true;
  for (std::int64_t r = rows.begin; r < rows.end && rows.depth > 0; ++r) {
    const In* in = input + r * rows.depth;
    Out* out = output + r * rows.depth;
    const std::int32_t maximum = row_maximum(in, rows.depth);
    const auto sum = sum_of_exponentials(in, rows.depth, maximum, scaling.minimum, exponentials);
    if (!sum) {
      fits = false;
      continue;
    }
    const numeric::Reciprocal reciprocal = numeric::reciprocal_of(sum->raw, kAccumulatorBits);
    const int exponent = std::clamp(reciprocal.bits_over_unit + 31 - 8 * static_cast<int>(sizeof(Out)), 0, 31);
    for (std::int64_t c = 0; c < rows.depth; ++c) {
      const std::int32_t difference = in[c] - maximum;
      std::int32_t result = kLowest;
      if (difference >= scaling.minimum) {
        result += numeric::rounding_divide_by_power_of_two((reciprocal.value * exponentials.values[-difference]).raw,
                                                           exponent);
      }
      out[c] = numeric::saturate<Out>(result);
    }
  }
  return fits;
}
template bool softmax_8bit(const std::int8_t*, Rows, const DifferenceScaling&, std::int8_t*);
template bool softmax_8bit(const std::int8_t*, Rows, const DifferenceScaling&, std::int16_t*);
template bool softmax_8bit(const std::uint8_t*, Rows, const DifferenceScaling&, std::uint8_t*);
template bool softmax_8bit(const std::uint8_t*, Rows, const DifferenceScaling&, std::int16_t*);

Softmax16Tables softmax16_tables(float input_scale, float beta) {
  constexpr std::int32_t kRange = 65535;
  Softmax16Tables tables;
  tables.exp =
      numeric::make_table16<double>(10.0 / kRange, 32767, 2.0 / kRange, 0, [](double x) { return std::exp(x); });
  tables.one_over_one_plus_x =
      numeric::make_table16<double>(1.0 / kRange, -32768, 2.0 / kRange, 0, [](double x) { return 1.0 / (1.0 + x); });
  tables.input_factor = numeric::make_multiplier(input_scale * beta / (10.0 / 65535.0));
  return tables;
}

bool softmax_16bit(const std::int16_t* input, Rows rows, const Softmax16Tables& tables, std::int16_t* output) {
  bool fits = true;
  for (std::int64_t r = rows.begin; r < rows.end && rows.depth > 0; ++r) {
    const std::int16_t* in = input + r * rows.depth;
    std::int16_t* out = output + r * rows.depth;
    const std::int32_t maximum = row_maximum(in, rows.depth);
    std::int64_t sum = 0;  // 15 fractional bits
    for (std::int64_t c = 0; c < rows.depth; ++c) {
      const std::int32_t steps = numeric::multiply(in[c] - maximum, tables.input_factor);
      out[c] = numeric::look_up(numeric::saturate<std::int16_t>(numeric::wrapping_add(steps, 32767)), tables.exp);
      sum += out[c];
    }
    if (sum > std::numeric_limits<std::int32_t>::max() || sum <= 0) {
      fits = false;
      continue;
    }
    const int headroom_plus_one = std::countl_zero(static_cast<std::uint32_t>(sum));
    // The sum's leading bits in [1, 2) as 16 fractional bits, minus 1, centred on 0.
    const auto leading = static_cast<std::int32_t>(((sum << (headroom_plus_one - 1)) + (1 << 13)) >> 14);
    const std::int16_t centred = numeric::saturate<std::int16_t>(leading - ((1 << 15) + (1 << 16)));
    const std::int64_t reciprocal = numeric::look_up(centred, tables.one_over_one_plus_x);
    const int right_shift = std::max(31 - headroom_plus_one, 1);
    const std::int64_t round = std::int64_t{1} << (right_shift - 1);
    for (std::int64_t c = 0; c < rows.depth; ++c) {
      const auto result = static_cast<std::int32_t>((out[c] * reciprocal + round) >> right_shift);
      out[c] = static_cast<std::int16_t>(numeric::clamp(result, 0, 32767));
    }
  }
  return fits;
}

void log_softmax(const float* input, Rows rows, float* output) {
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = input + r * rows.depth;
    float* out = output + r * rows.depth;
    const float maximum = row_maximum(in, rows.depth);
    float sum = 0;
    for (std::int64_t c = 0; c < rows.depth; ++c) sum += std::exp(in[c] - maximum);
    const float log_sum = std::log(sum);
    for (std::int64_t c = 0; c < rows.depth; ++c) out[c] = in[c] - maximum - log_sum;
  }
}

std::optional<LogSoftmaxScaling> log_softmax_scaling(double input_scale) {
  const auto difference = difference_scaling(1.0, input_scale);
  if (!difference) return std::nullopt;
  const double reverse = static_cast<double>(std::int64_t{1} << (31 - difference->left_shift)) / difference->multiplier;
  if (!(reverse < 1.0)) return std::nullopt;
  return LogSoftmaxScaling{*difference, numeric::make_multiplier(reverse)};
}

template <typename T>
bool log_softmax_8bit(const T* input, Rows rows, const LogSoftmaxScaling& scaling, T* output) {
  constexpr int kOutputBits = 4;
  constexpr std::int32_t kZeroPoint = std::numeric_limits<T>::max();
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  const DifferenceScaling& difference_scale = scaling.difference;
  const ExponentialTable exponentials(difference_scale);
  bool fits = true;
  for (std::int64_t r = rows.begin; r < rows.end && rows.depth > 0; ++r) {
    const T* in = input + r * rows.depth;
    T* out = output + r * rows.depth;
    const std::int32_t maximum = row_maximum(in, rows.depth);
    const auto sum = sum_of_exponentials(in, rows.depth, maximum, difference_scale.minimum, exponentials);
    if (!sum) {
      fits = false;
      continue;
    }
    const std::int32_t log_sum = numeric::log_of_x_from_1<kDifferenceBits>(*sum).raw;
    // Where the difference minus the logarithm would leave Q5.26; note > below where the sum has >=.
    const std::int32_t lowest = std::max(difference_scale.minimum - 1,
                                         numeric::multiply(numeric::wrapping_add(log_sum, kLowest), scaling.reverse));
    for (std::int64_t c = 0; c < rows.depth; ++c) {
      const std::int32_t difference = in[c] - maximum;
      out[c] = std::numeric_limits<T>::min();
      if (difference <= lowest) continue;
      const std::int32_t result = numeric::wrapping_sub(scale_difference(difference, difference_scale), log_sum);
      out[c] = numeric::saturate<T>(
          numeric::rounding_divide_by_power_of_two(result, 31 - kDifferenceBits - kOutputBits) + kZeroPoint);
    }
  }
  return fits;
}
template bool log_softmax_8bit(const std::int8_t*, Rows, const LogSoftmaxScaling&, std::int8_t*);
template bool log_softmax_8bit(const std::uint8_t*, Rows, const LogSoftmaxScaling&, std::uint8_t*);

}  // namespace reef::kernels
