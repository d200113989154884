// SPDX-License-Identifier: Apache-2.0
// Sums, differences, products and PRELU of 8-bit tensors, element by element, fast and exact.
//
// `exact` is the reference: operands rescaled by table, combined, and requantized (elementwise/rescale.h). The fast way
// computes the real number that this approximates in float, (a - zero_a) * factor_a + (b - zero_b) * factor_b or (a -
// zero_a) * (b - zero_b) * factor, as a fixed-point number; where that is closer to a border between two results than
// all roundings together can move it, `exact` decides (see matmul/byte_scaling.h for the idea). PRELU is the latter
// where a is below its zero point, and a product with 1 elsewhere. Where all factors are powers of two, half of the
// results may lie on borders; then floats are exact, and know on which side the reference rounds them.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/elementwise/rescale.h"

namespace reef::kernels {

class BytePairs {
 public:
  // T is int8_t or uint8_t. Sums: both rescaled, added (or subtracted), requantized as shipped.
  template <typename T>
  static BytePairs sum(const Rescale& a, const Rescale& b, bool minus, const Requantize& result);
  // Products of (a - zero_a) and (b - zero_b), multiplied by result.factor with numeric::multiply.
  template <typename T>
  static BytePairs product(std::int32_t zero_a, std::int32_t zero_b, const Requantize& result);

  // The same where a < zero_a; elsewhere a - zero_a, multiplied by `positive`.
  template <typename T>
  static BytePairs prelu(std::int32_t zero_a, std::int32_t zero_b, numeric::Multiplier positive,
                         const Requantize& result);

  // One result; operands and result as the bytes they are stored in.
  std::uint8_t exact(std::uint8_t a, std::uint8_t b) const;
  // A row; steps are 1, or 0 for an operand that stays. `out` may be an operand whose step is 1.
  void row(const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b, std::int64_t b_step, std::uint8_t* out,
           std::int64_t count) const;

  enum class Kind { kSum, kProduct, kPrelu, kExactSum };
  // Constants of the vector code: (a - zero_a) * factor_a + (b - zero_b) * factor_b + above, or (a - zero_a) * (b -
  // zero_b) * factor_a + (above or below, by the sign of the product), in units of 2^-bits. PRELU where a >= zero_a: (a
  // - zero_a) * factor_b + above_b. An exact sum has `above` or `below` by its sign, as products do.
  struct Real {
    Kind kind = Kind::kSum;
    bool is_signed = false, is_fast = false;
    std::int32_t zero_a = 0, zero_b = 0;
    float factor_a = 0, factor_b = 0, above = 0, below = 0, above_b = 0;
    int bits = 0;
    std::int32_t slack = 1;  // units that a result may be off, 0 if none; above and below have as many added
    std::int32_t zero_point = 0, lowest = 0, highest = 0;  // of the result
  };
  const Real& real() const { return real_; }

 private:
  void choose_bits(double largest, double off);
  // The part that products and PRELU share. `largest` is that of the real numbers.
  template <typename T>
  static BytePairs of_products(Kind kind, std::int32_t zero_a, std::int32_t zero_b, const Requantize& result,
                               double largest);
  template <typename T>
  void limit(const Requantize& result);

  Real real_;
  bool minus_ = false;
  Requantize result_;
  numeric::Multiplier positive_;             // PRELU
  std::array<std::int32_t, 256> a_{}, b_{};  // rescaled operands; products: less zero points
};

}  // namespace reef::kernels
