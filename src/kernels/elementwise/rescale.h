// SPDX-License-Identifier: Apache-2.0
// Fixed-point arithmetic of TFLite's quantized element-wise ops, element by element.
//
// Two operands with scales of their own are first brought to a common one (Rescale), combined, and the result is
// brought to the output's scale (Requantize). 8-bit operands have only 256 values, so for them the first step is a
// table.
//
// TFLite rescales here with a function meant for factors below 1 only and applies it to larger ones, too (comparisons
// of tensors whose scale exceeds 1, SUB with a very fine output scale, DIV of small numbers). Its shift by a count
// outside of 0...31 is undefined in C++, but x86 and ARM agree on the result, and bit-exactness with TFLite as it ships
// means that result. divide_by_power_of_two_as_shipped says what it is.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "numeric/fixed_point.h"

namespace reef::kernels {

// round(x / 2^exponent) for exponent in 0...31. Otherwise what the processors make of it: a 64-bit shift takes its
// count modulo 64, a 32-bit one modulo 32.
inline std::int32_t divide_by_power_of_two_as_shipped(std::int32_t x, int exponent) {
  const auto count = static_cast<unsigned>(exponent);
  const auto mask = static_cast<std::int32_t>(static_cast<std::uint32_t>((std::uint64_t{1} << (count % 64)) - 1));
  const std::int32_t remainder = x & mask;
  const std::int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> (count % 32)) + (remainder > threshold ? 1 : 0);
}

// x * factor as TFLite's "smaller than one" multiplication has it.
inline std::int32_t multiply_as_shipped(std::int32_t x, numeric::Multiplier factor) {
  return divide_by_power_of_two_as_shipped(numeric::saturating_rounding_doubling_high_mul(x, factor.mantissa),
                                           -factor.shift);
}

// One operand brought to the common scale: (raw - zero_point) * 2^left_shift * factor.
struct Rescale {
  std::int32_t zero_point = 0;
  int left_shift = 0;  // headroom: fractional bits kept in the common scale
  numeric::Multiplier factor;

  std::int32_t operator()(std::int32_t raw) const {
    return multiply_as_shipped(numeric::wrapping_shift_left(numeric::wrapping_sub(raw, zero_point), left_shift),
                               factor);
  }
};

// The same for an operand of type T: by table where T has 8 bits.
template <typename T>
class OperandRescale {
 public:
  explicit OperandRescale(const Rescale& rescale) : rescale_(rescale) {
    if constexpr (sizeof(T) == 1) {
      for (int i = 0; i < 256; ++i) table_[static_cast<std::size_t>(i)] = rescale(static_cast<T>(i));
    }
  }
  std::int32_t operator()(T raw) const {
    if constexpr (sizeof(T) == 1) {
      return table_[static_cast<std::uint8_t>(raw)];
    } else {
      return rescale_(raw);
    }
  }

 private:
  struct Nothing {};
  Rescale rescale_;
  [[no_unique_address]] std::conditional_t<sizeof(T) == 1, std::array<std::int32_t, 256>, Nothing> table_;
};

// From the common scale to the output's, limited to the fused activation's range.
struct Requantize {
  numeric::Multiplier factor;
  std::int32_t zero_point = 0;
  std::int32_t min = 0;
  std::int32_t max = 0;

  std::int32_t operator()(std::int32_t x) const { return finish(multiply_as_shipped(x, factor)); }
  std::int32_t finish(std::int32_t rescaled) const {
    return numeric::clamp(numeric::wrapping_add(rescaled, zero_point), min, max);
  }
};

}  // namespace reef::kernels
