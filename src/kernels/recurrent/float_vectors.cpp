// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/float_vectors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/recurrent/float_curves.h"
#include "kernels/recurrent/int_vectors.h"

namespace reef::kernels {
namespace {

constexpr std::int64_t kLanes = 4;
using Float4 [[gnu::vector_size(16)]] = float;

template <typename Release>
void logistic(ArrayPlace place, float* values, std::int64_t count) {
  constexpr std::int64_t kVector = Release::kVector;
  const std::int64_t start = std::min((kVector - place.offset % kVector) % kVector, place.size);
  const std::int64_t end = start + (place.size - start) / kVector * kVector;
  const std::int64_t first = std::clamp<std::int64_t>(start - place.first, 0, count);  // of ours in whole vectors
  const std::int64_t last = std::clamp<std::int64_t>(end - place.first, first, count);
  const auto singly = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      if (std::isnan(values[i])) continue;
      const float e = std::exp(std::min(values[i], Release::kLargest));
      values[i] = e / (1.0f + e);
    }
  };
  singly(0, first);
  Release::logistics(values + first, last - first);
  singly(last, count);
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
      return as_in_2_9 ? CurvesOf29::tanhs(values, count) : CurvesOfCurrent::tanhs(values, count);
    case Activation::kSignBit:
      return map(values, count, [](float x) { return std::signbit(x) ? 1.0f : 0.0f; });
    case Activation::kSigmoid:
      if (as_in_2_9) return logistic<CurvesOf29>(place, values, count);
      return logistic<CurvesOfCurrent>(place, values, count);
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

namespace {

constexpr std::int64_t kRowsTogether = 8;

// The same for rows of a matrix, several at a time: one sum alone would wait for each addition.
void add_row_products(SumOrder order, const float* matrix, const float* vector, std::int64_t length, float* sums) {
  Float4 lanes[kRowsTogether] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    Float4 x;
    std::memcpy(&x, vector + i, sizeof x);
    for (std::int64_t r = 0; r < kRowsTogether; ++r) {
      Float4 w;
      std::memcpy(&w, matrix + r * length + i, sizeof w);
      lanes[r] += w * x;
    }
  }
  for (std::int64_t r = 0; r < kRowsTogether; ++r) {
    const float* row = matrix + r * length;
    const Float4& s = lanes[r];
    const bool tail_last = order == SumOrder::kTailLast;
    float result = tail_last ? sums[r] + (((s[0] + s[1]) + s[2]) + s[3]) : (s[0] + s[2]) + (s[1] + s[3]);
    for (std::int64_t k = i; k < length; ++k) result += row[k] * vector[k];
    sums[r] = tail_last ? result : sums[r] + result;
  }
}

}  // namespace

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

void VectorBatch::add_products(const WeightMatrix& matrix, std::int64_t row, std::int64_t rows, std::int64_t index,
                               float* sums) const {
  std::int64_t r = 0;
  if (matrix.real != nullptr) {
    for (; r + kRowsTogether <= rows; r += kRowsTogether) {
      add_row_products(order_, matrix.real + (row + r) * length_, values_ + index * stride_, length_, sums + r);
    }
  }
  for (; r < rows; ++r) sums[r] = add_product(sums[r], matrix, row + r, index);
}

}  // namespace reef::kernels
