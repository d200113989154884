// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/targets.h"
#include "kernels/simd/trace.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

using Kind = BytePairs::Kind;

// A call of a body's template for a kind, of signed or unsigned numbers.
#define REEF_OF_KIND(function, is_signed, kKind, ...) \
  ((is_signed) ? function<true, kKind>(__VA_ARGS__) : function<false, kKind>(__VA_ARGS__))
#define REEF_BY_KIND(function, real, ...)                                                                  \
  ((real).kind == Kind::kSum       ? REEF_OF_KIND(function, (real).is_signed, Kind::kSum, __VA_ARGS__)     \
   : (real).kind == Kind::kProduct ? REEF_OF_KIND(function, (real).is_signed, Kind::kProduct, __VA_ARGS__) \
   : (real).kind == Kind::kPrelu   ? REEF_OF_KIND(function, (real).is_signed, Kind::kPrelu, __VA_ARGS__)   \
                                   : REEF_OF_KIND(function, (real).is_signed, Kind::kExactSum, __VA_ARGS__))

#if defined(__x86_64__)
#define REEF_BODY "kernels/elementwise/byte_pairs_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"

#include "kernels/simd/begin_avx512.h"
namespace avx512 {
namespace {
#include "kernels/elementwise/byte_pairs_body.h"
#include "kernels/elementwise/byte_pairs_wide_body.h"
}  // namespace
}  // namespace avx512
#include "kernels/simd/end_target.h"
#elif defined(__aarch64__)
#include "kernels/simd/begin_neon.h"
namespace neon {
namespace {
#include "kernels/elementwise/byte_pairs_neon_body.h"
}  // namespace
}  // namespace neon
#include "kernels/simd/end_target.h"
#endif

namespace {

double real_of(numeric::Multiplier m) { return std::ldexp(static_cast<double>(m.mantissa), m.shift - 31); }

template <typename T>
bool is_within(std::int32_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

constexpr std::int32_t kSlackOfProducts = 2;  // what choose_bits gives for results below 256, with 14 bits

// Factors that multiply_as_shipped treats as multiplications by real numbers.
bool is_regular(numeric::Multiplier m) { return m.shift <= 0 && m.shift >= -31; }

// Whether it is a power of two, and its products with integers are multiples of 2^-places.
bool is_power_of_two(numeric::Multiplier m, int places) { return m.mantissa == 1 << 30 && 1 - m.shift <= places; }

// How far the second of numeric::multiply's roundings moves one half.
float nudge_of(numeric::Multiplier m) { return m.shift < 0 ? std::ldexp(1.0f, m.shift - 1) : 0.0f; }

}  // namespace

// `largest`: of the absolute values that are added up; `off`: how far the reference's roundings may lead from the real
// number. Float operations are off by 2^-24 of a value each; four of them matter, without fused multiply-adds: factors,
// products, and two additions. Half a unit is for rounding to units.
void BytePairs::choose_bits(double largest, double off) {
  real_.bits = 14;
  while (real_.bits >= 5 && std::ldexp(largest, real_.bits) >= 2147483647.0) --real_.bits;
  const double unit = std::ldexp(1.0, real_.bits);
  const double slack = std::floor(unit * (largest * std::ldexp(4.0, -24) + off) + 0.5) + 1;
  real_.is_fast = real_.is_fast && real_.bits >= 5 && 8 * slack < unit;  // else too much would be in doubt
  real_.slack = real_.is_fast ? static_cast<std::int32_t>(slack) : 1;
}

template <typename T>
BytePairs BytePairs::sum(const Rescale& a, const Rescale& b, bool minus, const Requantize& result) {
  BytePairs pairs;
  pairs.minus_ = minus;
  pairs.result_ = result;
  for (int i = 0; i < 256; ++i) {
    pairs.a_[static_cast<std::size_t>(i)] = a(static_cast<T>(i));
    pairs.b_[static_cast<std::size_t>(i)] = b(static_cast<T>(i));
  }
  Real& real = pairs.real_;
  real.is_signed = std::is_signed_v<T>;
  real.is_fast = is_regular(a.factor) && is_regular(b.factor) && is_regular(result.factor);
  const double factor = real_of(result.factor);
  const double of_a = std::ldexp(real_of(a.factor), a.left_shift) * factor;
  const double of_b = std::ldexp(real_of(b.factor), b.left_shift) * factor;
  const int left_shift = std::min(a.left_shift, b.left_shift);
  // Each operand is rounded twice, by less than 1 together, and so is the result (its two roundings make 1/2 off by
  // 2^(shift - 1)).
  const double off = 2.5 * factor + std::ldexp(1.0, result.factor.shift);
  pairs.choose_bits(256 * (of_a + of_b) + 1, off);
  const auto unit = static_cast<float>(1 << std::max(real.bits, 0));
  real.zero_a = a.zero_point;
  real.zero_b = b.zero_point;
  real.factor_a = static_cast<float>(of_a) * unit;
  real.factor_b = static_cast<float>(minus ? -of_b : of_b) * unit;
  real.above = real.below = 0.5f * unit + static_cast<float>(real.slack);
  // Powers of two: operands are not rounded, and a result on a border goes away from zero.
  const int places = std::min(real.bits - 1, left_shift - 1);
  const double finest = std::ldexp(std::min(of_a, of_b), places);
  if (is_power_of_two(a.factor, left_shift - 1) && is_power_of_two(b.factor, left_shift - 1) &&
      is_power_of_two(result.factor, 31) && finest >= 1) {
    real.kind = Kind::kExactSum;
    real.slack = 0;
    real.above = 0.5f * unit;
    real.below = 0.5f * unit - 1;
  }
  pairs.limit<T>(result);
  return pairs;
}

template <typename T>
BytePairs BytePairs::of_products(Kind kind, std::int32_t zero_a, std::int32_t zero_b, const Requantize& result,
                                 double largest) {
  BytePairs pairs;
  pairs.result_ = result;
  for (int i = 0; i < 256; ++i) {
    pairs.a_[static_cast<std::size_t>(i)] = static_cast<T>(i) - zero_a;
    pairs.b_[static_cast<std::size_t>(i)] = static_cast<T>(i) - zero_b;
  }
  Real& real = pairs.real_;
  real.kind = kind;
  real.is_signed = std::is_signed_v<T>;
  // Products are below 2^16, so that shifting them to the left loses no bits.
  real.is_fast = result.factor.shift <= 14;
  // Only numbers below 256 count, but all must fit.
  pairs.choose_bits(256, 0);
  while (real.bits >= 5 && std::ldexp(largest, real.bits) > 2147483647.0) --real.bits;
  real.is_fast = real.is_fast && real.bits >= 5 && is_within<T>(zero_a) && is_within<T>(zero_b);
  if (is_power_of_two(result.factor, real.bits - 1)) real.slack = 0;
  const auto unit = static_cast<float>(1 << std::max(real.bits, 0));
  const float nudge = nudge_of(result.factor);
  real.zero_a = zero_a;
  real.zero_b = zero_b;
  real.factor_a = static_cast<float>(real_of(result.factor)) * unit;
  real.above = (0.5f + nudge) * unit + static_cast<float>(real.slack);
  real.below = (0.5f - nudge) * unit + static_cast<float>(real.slack);
  pairs.limit<T>(result);
  return pairs;
}

template <typename T>
void BytePairs::limit(const Requantize& result) {
  real_.zero_point = result.zero_point;
  real_.lowest = result.min;
  real_.highest = result.max;
  real_.is_fast =
      real_.is_fast && is_within<T>(result.zero_point) && is_within<T>(result.min) && is_within<T>(result.max);
}

template <typename T>
BytePairs BytePairs::product(std::int32_t zero_a, std::int32_t zero_b, const Requantize& result) {
  return of_products<T>(Kind::kProduct, zero_a, zero_b, result, 65536 * real_of(result.factor));
}

template <typename T>
BytePairs BytePairs::prelu(std::int32_t zero_a, std::int32_t zero_b, numeric::Multiplier positive,
                           const Requantize& result) {
  const double largest = std::max(65536 * real_of(result.factor), 256 * real_of(positive));
  BytePairs pairs = of_products<T>(Kind::kPrelu, zero_a, zero_b, result, largest);
  pairs.positive_ = positive;
  Real& real = pairs.real_;
  real.is_fast = real.is_fast && positive.shift <= 14;
  const auto unit = static_cast<float>(1 << std::max(real.bits, 0));
  if (real.slack == 0 && !is_power_of_two(positive, real.bits - 1)) {  // only one of both is exact
    real.slack = kSlackOfProducts;
    real.above += static_cast<float>(real.slack);
    real.below += static_cast<float>(real.slack);
  }
  real.factor_b = static_cast<float>(real_of(positive)) * unit;
  real.above_b = (0.5f + nudge_of(positive)) * unit + static_cast<float>(real.slack);
  return pairs;
}

std::uint8_t BytePairs::exact(std::uint8_t a, std::uint8_t b) const {
  if (real_.kind == Kind::kSum || real_.kind == Kind::kExactSum) {
    const std::int32_t total = minus_ ? numeric::wrapping_sub(a_[a], b_[b]) : numeric::wrapping_add(a_[a], b_[b]);
    return static_cast<std::uint8_t>(result_(total));
  }
  const bool is_positive = real_.kind == Kind::kPrelu && a_[a] >= 0;
  const std::int32_t product = is_positive ? a_[a] : numeric::wrapping_mul(a_[a], b_[b]);
  return static_cast<std::uint8_t>(
      result_.finish(numeric::multiply(product, is_positive ? positive_ : result_.factor)));
}

void BytePairs::row(const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b, std::int64_t b_step,
                    std::uint8_t* out, std::int64_t count) const {
#if defined(__x86_64__)
  const SimdTarget target = active_target();
  if (real_.is_fast && target == SimdTarget::kAvx512) {
    note_kernel(target);
    const std::int64_t done = count < 64 ? 0 : avx512::wide_pairs_row(*this, a, a_step, b, b_step, out, count);
    if (done == count) return;
    return avx512::pairs_row(*this, a + done * a_step, a_step, b + done * b_step, b_step, out + done, count - done);
  } else if (real_.is_fast && includes(target, SimdTarget::kAvx2)) {
    note_kernel(SimdTarget::kAvx2);
    return avx2::pairs_row(*this, a, a_step, b, b_step, out, count);
  } else if (real_.is_fast && target == SimdTarget::kSse4) {
    note_kernel(target);
    return sse4::pairs_row(*this, a, a_step, b, b_step, out, count);
  }
#elif defined(__aarch64__)
  if (real_.is_fast && active_target() != SimdTarget::kBaseline) {
    note_kernel(SimdTarget::kNeon);
    return neon::pairs_row(*this, a, a_step, b, b_step, out, count);
  }
#endif
  note_kernel(SimdTarget::kBaseline);
  for (std::int64_t i = 0; i < count; ++i) out[i] = exact(a[i * a_step], b[i * b_step]);
}

template BytePairs BytePairs::sum<std::int8_t>(const Rescale&, const Rescale&, bool, const Requantize&);
template BytePairs BytePairs::sum<std::uint8_t>(const Rescale&, const Rescale&, bool, const Requantize&);
template BytePairs BytePairs::product<std::int8_t>(std::int32_t, std::int32_t, const Requantize&);
template BytePairs BytePairs::product<std::uint8_t>(std::int32_t, std::int32_t, const Requantize&);
template BytePairs BytePairs::prelu<std::int8_t>(std::int32_t, std::int32_t, numeric::Multiplier, const Requantize&);
template BytePairs BytePairs::prelu<std::uint8_t>(std::int32_t, std::int32_t, numeric::Multiplier, const Requantize&);

}  // namespace reef::kernels
