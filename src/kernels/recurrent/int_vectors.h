// SPDX-License-Identifier: Apache-2.0
// Inner products of widened activations with int8 weights.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reef::kernels {

// a . b, exactly. Runs are short enough for 32 bits: |a| <= 32768, |b| <= 128 allow 512 products.
inline std::int64_t int_dot_product(const std::int16_t* a, const std::int8_t* b, std::int64_t count) {
  constexpr std::int64_t kRun = 256;
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kRun) {
    const std::int64_t end = std::min(count, begin + kRun);
    std::int32_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += a[i] * b[i];
    total += sum;
  }
  return total;
}

}  // namespace reef::kernels
