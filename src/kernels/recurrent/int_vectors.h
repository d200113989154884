// SPDX-License-Identifier: Apache-2.0
// Inner products of widened activations with int8 weights.
#pragma once

#include <cstdint>

namespace reef::kernels {

// a . b, exactly. |a| <= 32768.
std::int64_t int_dot_product(const std::int16_t* a, const std::int8_t* b, std::int64_t count);

}  // namespace reef::kernels
