// SPDX-License-Identifier: Apache-2.0
// tanh and the logistic function as TFLite's recurrent kernels compute them, to the bit: Eigen's approximations, which
// are not the same in TFLite 2.9.1 and in LiteRT 2.3. One number at a time (the reference) and eight (the same
// operations in the same order). NaN stays the NaN it is.
#pragma once

#include <cstdint>

namespace reef::kernels {

struct CurvesOf29 {
  static constexpr std::int64_t kVector = 8;  // floats in a vector, which is aligned to its size
  static constexpr float kLargest = 18;       // exp is taken of nothing larger
  static float tanh(float value);
  static float vector_exp(float x);  // of x <= kLargest
  static void tanhs(float* values, std::int64_t count);
  static void logistics(float* values, std::int64_t count);  // vector_exp(x) / (1 + vector_exp(x))
};

struct CurvesOfCurrent {
  static constexpr std::int64_t kVector = 4;
  static constexpr float kLargest = 16.6355324f;
  static float tanh(float value);
  static float vector_exp(float x);
  static void tanhs(float* values, std::int64_t count);
  static void logistics(float* values, std::int64_t count);
};

}  // namespace reef::kernels
