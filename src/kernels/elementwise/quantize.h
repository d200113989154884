// SPDX-License-Identifier: Apache-2.0
// Floats to quantized integers, as TFLite's reference kernel does it: round(x / scale), halves away from zero, plus the
// zero point (wrapping), saturated. Quotients beyond 32 bits and NaN count as INT32_MIN before the zero point is added.
#pragma once

#include <cstdint>

namespace reef::kernels {

// T: int8_t, uint8_t or int16_t.
template <typename T>
void quantize_to(const float* in, std::int64_t count, float scale, std::int32_t zero_point, T* out);

}  // namespace reef::kernels
