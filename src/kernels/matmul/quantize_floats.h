// SPDX-License-Identifier: Apache-2.0
// On-the-fly quantization of float activations to int8, for "hybrid" ops (float activations, integer weights).
// Equal to TFLite's tensor utilities to the bit.
#pragma once

#include <cstdint>

namespace reef::kernels {

struct FloatQuantization {
  float scale = 1;
  std::int32_t zero_point = 0;
};

enum class FloatQuantizer {
  kSymmetric,         // zero point 0, values in [-127, 127]
  kAsymmetric,        // the range, widened to contain 0, is spread over [-128, 127]
  kAsymmetricDouble,  // the same with scale and zero point computed in double, as TFLite 2.9 does
};

FloatQuantization quantize_floats(const float* values, std::int64_t count, FloatQuantizer quantizer,
                                  std::int8_t* quantized);

}  // namespace reef::kernels
