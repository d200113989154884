// SPDX-License-Identifier: Apache-2.0
// L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION of rows, as TFLite's reference kernels compute them.
#pragma once

#include <cstdint>

namespace reef::kernels {

// Each row divided by its Euclidean length (at least 1e-6).
void l2_normalize(const float* input, std::int64_t rows, std::int64_t depth, float* output);

// The same on quantized numbers by a fixed-point inverse square root; the output's scale is 1/128, its zero point 0
// (int8) or 128 (uint8). Squares are summed in 32 bits, which rows of more than 33 000 elements can overflow: then the
// row counts as having no length, where TFLite's result is undefined.
void l2_normalize(const std::int8_t* input, std::int64_t rows, std::int64_t depth, std::int32_t zero_point,
                  std::int8_t* output);
void l2_normalize(const std::uint8_t* input, std::int64_t rows, std::int64_t depth, std::int32_t zero_point,
                  std::uint8_t* output);

struct LocalResponseParams {
  std::int64_t radius = 5;
  double bias = 1, alpha = 1, beta = 0.5;
};
// x / (bias + alpha * sum of squares of the neighbours c - radius .. c + radius - 1)^beta. The upper neighbour at
// distance `radius` is left out: so does TFLite's reference kernel.
void local_response_normalize(const float* input, std::int64_t rows, std::int64_t depth,
                              const LocalResponseParams& params, float* output);

}  // namespace reef::kernels
