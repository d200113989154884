// SPDX-License-Identifier: Apache-2.0
// On-the-fly quantization of float activations to int8, for "hybrid" ops (float activations, integer weights).
// Equal to TFLite's portable tensor utilities, including which steps are in float and which in double.
#pragma once

#include <cstdint>

namespace reef::kernels {

struct FloatQuantization {
  float scale = 1;
  std::int32_t zero_point = 0;
};

// Symmetric: zero point 0, values in [-127, 127].
FloatQuantization quantize_symmetric(const float* values, std::int64_t count, std::int8_t* quantized);
// Asymmetric: the range, widened to contain 0, is spread over [-128, 127].
FloatQuantization quantize_asymmetric(const float* values, std::int64_t count, std::int8_t* quantized);

inline FloatQuantization quantize_floats(const float* values, std::int64_t count, bool asymmetric,
                                         std::int8_t* quantized) {
  return asymmetric ? quantize_asymmetric(values, count, quantized) : quantize_symmetric(values, count, quantized);
}

}  // namespace reef::kernels
