// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/normalize.h"

#include <algorithm>
#include <cmath>

#include "numeric/fixed_point.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {
namespace {

template <typename T>
numeric::Multiplier inverse_length(const T* row, std::int64_t depth, std::int32_t zero_point) {
  std::int32_t sum = 0;
  for (std::int64_t c = 0; c < depth; ++c) {
    const std::int32_t x = row[c] - zero_point;
    sum = numeric::wrapping_add(sum, x * x);
  }
  return numeric::inverse_square_root(sum);
}

}  // namespace

void l2_normalize(const float* input, std::int64_t rows, std::int64_t depth, float* output) {
  constexpr float kSmallestLength = 1e-6f;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = input + r * depth;
    float* out = output + r * depth;
    float sum = 0;
    for (std::int64_t c = 0; c < depth; ++c) sum += in[c] * in[c];
    const float length = std::max(std::sqrt(sum), kSmallestLength);
    for (std::int64_t c = 0; c < depth; ++c) out[c] = in[c] / length;
  }
}

void l2_normalize(const std::int8_t* input, std::int64_t rows, std::int64_t depth, std::int32_t zero_point,
                  std::int8_t* output) {
  constexpr int kOutputFractionalBits = 7;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int8_t* in = input + r * depth;
    numeric::Multiplier factor = inverse_length(in, depth, zero_point);
    factor.shift += kOutputFractionalBits;
    for (std::int64_t c = 0; c < depth; ++c) {
      output[r * depth + c] = numeric::saturate<std::int8_t>(numeric::multiply(in[c] - zero_point, factor));
    }
  }
}

void l2_normalize(const std::uint8_t* input, std::int64_t rows, std::int64_t depth, std::int32_t zero_point,
                  std::uint8_t* output) {
  // Unlike for int8, the 7 fractional bits are added before the multiplication: the two round differently.
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint8_t* in = input + r * depth;
    const numeric::Multiplier factor = inverse_length(in, depth, zero_point);
    for (std::int64_t c = 0; c < depth; ++c) {
      const std::int32_t scaled = numeric::multiply(128 * (in[c] - zero_point), factor);
      output[r * depth + c] = numeric::saturate<std::uint8_t>(128 + scaled);
    }
  }
}

void local_response_normalize(const float* input, std::int64_t rows, std::int64_t depth,
                              const LocalResponseParams& params, float* output) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = input + r * depth;
    for (std::int64_t c = 0; c < depth; ++c) {
      const std::int64_t begin = std::max<std::int64_t>(0, c - params.radius);
      const std::int64_t end = std::min(depth, c + params.radius);
      float sum = 0;
      for (std::int64_t neighbour = begin; neighbour < end; ++neighbour) sum += in[neighbour] * in[neighbour];
      const auto factor = static_cast<float>(std::pow(params.bias + params.alpha * sum, -params.beta));
      output[r * depth + c] = in[c] * factor;
    }
  }
}

}  // namespace reef::kernels
