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

template <typename F>
void map(float* values, std::int64_t count, F f) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
}

}  // namespace

void activate(Activation activation, float* values, std::int64_t count) {
  switch (activation) {
    case Activation::kNone: return;
    case Activation::kRelu: return map(values, count, [](float x) { return x < 0 ? 0.0f : x; });
    case Activation::kReluN1To1: return map(values, count, [](float x) { return std::max(-1.0f, std::min(x, 1.0f)); });
    case Activation::kRelu6: return map(values, count, [](float x) { return std::max(0.0f, std::min(x, 6.0f)); });
    case Activation::kTanh: return map(values, count, [](float x) { return std::tanh(x); });
    case Activation::kSignBit: return map(values, count, [](float x) { return std::signbit(x) ? 1.0f : 0.0f; });
    case Activation::kSigmoid: return map(values, count, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  }
}

float add_dot_product(float start, const float* a, const float* b, std::int64_t count) {
  Float4 sums = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Float4 x, y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sums += x * y;
  }
  float result = start + (((sums[0] + sums[1]) + sums[2]) + sums[3]);
  for (; i < count; ++i) result += a[i] * b[i];
  return result;
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
    return add_dot_product(start, matrix.real + row * length_, values_ + index * stride_, length_);
  }
  const auto sum = static_cast<std::int32_t>(
      int_dot_product(quantized_.data() + index * length_, matrix.quantized + row * length_, length_));
  const float scale = scales_[static_cast<std::size_t>(index)] * matrix.scale;
  return start + static_cast<float>(sum) * scale;
}

}  // namespace reef::kernels
