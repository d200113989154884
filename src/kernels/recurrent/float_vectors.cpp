// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/float_vectors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/recurrent/int_vectors.h"

namespace reef::kernels {
namespace {

constexpr std::int64_t kLanes = 4;
using Float4 [[gnu::vector_size(16)]] = float;

// Ratios of polynomials, to a few units in the last place: Eigen's, which TFLite's recurrent kernels use.
float tanh_of_current(float value) {
  constexpr float kLimit = 7.90738964080810547f;  // where the ratio becomes 1
  if (std::isnan(value)) return value;
  const float x = std::max(std::min(value, kLimit), -kLimit);
  const float x2 = x * x;
  float p = 1.394553628e-8f;
  for (const float c : {2.102733560e-5f, 3.520756727e-3f, 1.340216100e-1f}) p = p * x2 + c;
  float q = 8.015776984e-7f;
  for (const float c : {3.326951409e-4f, 2.597254514e-2f, 4.673548340e-1f, 1.0f}) q = q * x2 + c;
  return (x2 * x * p + x) / q;
}

float tanh_of_2_9(float value) {
  constexpr float kLimit = 7.90531110763549805f;  // where the ratio becomes 1
  constexpr float kTiny = 0.0004f;
  if (std::isnan(value)) return value;
  const float x = std::max(std::min(value, kLimit), -kLimit);
  if (std::abs(value) < kTiny) return x;
  const float x2 = x * x;
  float p = x2 * -2.76076847742355e-16f + 2.00018790482477e-13f;
  for (const float c : {-8.60467152213735e-11f, 5.12229709037114e-08f, 1.48572235717979e-05f, 6.37261928875436e-04f,
                        4.89352455891786e-03f}) {
    p = x2 * p + c;
  }
  p = x * p;
  float q = x2 * 1.19825839466702e-06f + 1.18534705686654e-04f;
  for (const float c : {2.26843463243900e-03f, 4.89352518554385e-03f}) q = x2 * q + c;
  return p / q;
}

// x = m * ln 2 + r
struct ReducedArgument {
  float m = 0, r = 0;
};
ReducedArgument reduce(float x) {
  const float m = std::floor(x * 1.44269504088896341f + 0.5f);
  const float r = m * -0.693359375f + x;
  return {m, m * 2.12194440e-4f + r};
}

// The logistic function is exp(x) / (1 + exp(x)) in both releases, with another exp(x) in each.
struct Logistic29 {
  static constexpr std::int64_t kVector = 8;  // floats in a vector, which is aligned to its size
  static constexpr float kLargest = 18;       // exp is taken of nothing larger
  static float vector_exp(float x) {
    if (x < -104.0f) return 0;
    const auto [m, r] = reduce(x);
    const float r2 = r * r;
    float even = r2 * 1.37449637986719608306884765625e-3f + 4.166965186595916748046875e-2f;
    const float odd = r2 * 8.36894474923610687255859375e-3f + 0.16666518151760101318359375f;
    even = r2 * even + 0.49999988079071044921875f;
    const float p = r * odd + even;
    return std::ldexp(r2 * p + (r + 1.0f), static_cast<int>(m));
  }
};
struct LogisticCurrent {
  static constexpr std::int64_t kVector = 4;
  static constexpr float kLargest = 16.6355324f;
  static float vector_exp(float x) {  // as exp(x / 2) squared
    if (x < -104.0f) return 0;
    const auto [m, r] = reduce(x * 0.5f);
    const float r2 = r * r;
    const float even = r2 * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
    const float odd = r2 * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
    const float p = r * odd + even;
    const float root = std::ldexp(r2 * p + (r + 1.0f), static_cast<int>(m));
    return root * root;
  }
};

template <typename Release>
void logistic(ArrayPlace place, float* values, std::int64_t count) {
  constexpr std::int64_t kVector = Release::kVector;
  const std::int64_t start = std::min((kVector - place.offset % kVector) % kVector, place.size);
  const std::int64_t end = start + (place.size - start) / kVector * kVector;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) continue;
    const float x = std::min(values[i], Release::kLargest);
    const std::int64_t at = place.first + i;
    const float e = at >= start && at < end ? Release::vector_exp(x) : std::exp(x);
    values[i] = e / (1.0f + e);
  }
}

template <typename F>
void map(float* values, std::int64_t count, F f) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
}

}  // namespace

void activate(Activation activation, FloatFunctions functions, ArrayPlace place, float* values, std::int64_t count) {
  const bool as_in_2_9 = functions == FloatFunctions::kTflite29;
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return map(values, count, [](float x) { return x < 0 ? 0.0f : x; });
    case Activation::kReluN1To1:
      return map(values, count, [](float x) { return std::max(-1.0f, std::min(x, 1.0f)); });
    case Activation::kRelu6:
      return map(values, count, [](float x) { return std::max(0.0f, std::min(x, 6.0f)); });
    case Activation::kTanh:
      return map(values, count, as_in_2_9 ? tanh_of_2_9 : tanh_of_current);
    case Activation::kSignBit:
      return map(values, count, [](float x) { return std::signbit(x) ? 1.0f : 0.0f; });
    case Activation::kSigmoid:
      if (as_in_2_9) return logistic<Logistic29>(place, values, count);
      return logistic<LogisticCurrent>(place, values, count);
  }
}

float add_dot_product(SumOrder order, float start, const float* a, const float* b, std::int64_t count) {
  Float4 sums = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Float4 x, y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sums += x * y;
  }
  if (order == SumOrder::kTailLast) {
    float result = start + (((sums[0] + sums[1]) + sums[2]) + sums[3]);
    for (; i < count; ++i) result += a[i] * b[i];
    return result;
  }
  float result = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  for (; i < count; ++i) result += a[i] * b[i];
  return start + result;
}

void normalize_to_unit_variance(float* values, std::int64_t count) {
  constexpr float kEpsilon = 1e-8f;
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  const float mean = sum / static_cast<float>(count);
  float squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float difference = values[i] - mean;
    squares += difference * difference;
  }
  const float variance = squares / static_cast<float>(count);
  const float factor = 1.0f / std::sqrt(variance + kEpsilon);
  for (std::int64_t i = 0; i < count; ++i) values[i] = (values[i] - mean) * factor;
}

void clip(float* values, std::int64_t count, float limit) {
  if (!(limit > 0)) return;
  map(values, count, [limit](float x) { return std::max(std::min(limit, x), -limit); });
}

void VectorBatch::quantize(FloatQuantizer quantizer) {
  quantized_.resize(static_cast<std::size_t>(vectors_ * length_));
  scales_.resize(static_cast<std::size_t>(vectors_));
  std::vector<std::int8_t> row(static_cast<std::size_t>(length_));
  for (std::int64_t v = 0; v < vectors_; ++v) {
    const FloatQuantization q = quantize_floats(values_ + v * stride_, length_, quantizer, row.data());
    scales_[static_cast<std::size_t>(v)] = q.scale;
    for (std::int64_t i = 0; i < length_; ++i) {
      quantized_[static_cast<std::size_t>(v * length_ + i)] =
          static_cast<std::int16_t>(row[static_cast<std::size_t>(i)] - q.zero_point);
    }
  }
}

float VectorBatch::add_product(float start, const WeightMatrix& matrix, std::int64_t row, std::int64_t index) const {
  if (matrix.real != nullptr) {
    return add_dot_product(order_, start, matrix.real + row * length_, values_ + index * stride_, length_);
  }
  const auto sum = static_cast<std::int32_t>(
      int_dot_product(quantized_.data() + index * length_, matrix.quantized + row * length_, length_));
  const float scale = scales_[static_cast<std::size_t>(index)] * matrix.scale;
  return start + static_cast<float>(sum) * scale;
}

}  // namespace reef::kernels
