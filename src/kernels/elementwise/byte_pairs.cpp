// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/targets.h"
#include "numeric/fixed_point.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace reef::kernels {

#if defined(__x86_64__)
#include "kernels/simd/begin_sse4.h"
namespace sse4 {
namespace {
#include "kernels/elementwise/byte_pairs_body.h"
}  // namespace
}  // namespace sse4
#include "kernels/simd/end_target.h"

#include "kernels/simd/begin_avx2.h"
namespace avx2 {
namespace {
#include "kernels/elementwise/byte_pairs_body.h"
}  // namespace
}  // namespace avx2
#include "kernels/simd/end_target.h"

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

// Factors that multiply_as_shipped treats as multiplications by real numbers.
bool is_regular(numeric::Multiplier m) { return m.shift <= 0 && m.shift >= -31; }

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
  real.zero_point = result.zero_point;
  real.lowest = result.min;
  real.highest = result.max;
  real.is_fast =
      real.is_fast && is_within<T>(result.zero_point) && is_within<T>(result.min) && is_within<T>(result.max);
  return pairs;
}

template <typename T>
BytePairs BytePairs::product(std::int32_t zero_a, std::int32_t zero_b, const Requantize& result) {
  BytePairs pairs;
  pairs.result_ = result;
  for (int i = 0; i < 256; ++i) {
    pairs.a_[static_cast<std::size_t>(i)] = static_cast<T>(i) - zero_a;
    pairs.b_[static_cast<std::size_t>(i)] = static_cast<T>(i) - zero_b;
  }
  Real& real = pairs.real_;
  real.is_signed = std::is_signed_v<T>;
  real.is_product = true;
  real.is_fast = result.factor.shift <= 0;
  const double factor = real_of(result.factor);
  // Only numbers below 256 count, but all must fit.
  pairs.choose_bits(256, 0);
  while (real.bits >= 5 && std::ldexp(65536 * factor, real.bits) > 2147483647.0) --real.bits;
  real.is_fast = real.is_fast && real.bits >= 5;
  const auto unit = static_cast<float>(1 << std::max(real.bits, 0));
  const float nudge = result.factor.shift < 0 ? std::ldexp(1.0f, result.factor.shift - 1) : 0.0f;
  real.zero_a = zero_a;
  real.zero_b = zero_b;
  real.factor_a = static_cast<float>(factor) * unit;
  real.above = (0.5f + nudge) * unit + static_cast<float>(real.slack);
  real.below = (0.5f - nudge) * unit + static_cast<float>(real.slack);
  real.zero_point = result.zero_point;
  real.lowest = result.min;
  real.highest = result.max;
  real.is_fast =
      real.is_fast && is_within<T>(result.zero_point) && is_within<T>(result.min) && is_within<T>(result.max);
  return pairs;
}

std::uint8_t BytePairs::exact(std::uint8_t a, std::uint8_t b) const {
  if (real_.is_product)
    return static_cast<std::uint8_t>(result_.finish(numeric::multiply(a_[a] * b_[b], result_.factor)));
  const std::int32_t total = minus_ ? numeric::wrapping_sub(a_[a], b_[b]) : numeric::wrapping_add(a_[a], b_[b]);
  return static_cast<std::uint8_t>(result_(total));
}

void BytePairs::row(const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b, std::int64_t b_step,
                    std::uint8_t* out, std::int64_t count) const {
#if defined(__x86_64__)
  const SimdTarget target = active_target();
  if (real_.is_fast && target == SimdTarget::kAvx512) {
    const std::int64_t done = count < 64 ? 0 : avx512::wide_pairs_row(*this, a, a_step, b, b_step, out, count);
    if (done == count) return;
    return avx512::pairs_row(*this, a + done * a_step, a_step, b + done * b_step, b_step, out + done, count - done);
  } else if (real_.is_fast && includes(target, SimdTarget::kAvx2)) {
    return avx2::pairs_row(*this, a, a_step, b, b_step, out, count);
  } else if (real_.is_fast && target == SimdTarget::kSse4) {
    return sse4::pairs_row(*this, a, a_step, b, b_step, out, count);
  }
#elif defined(__aarch64__)
  if (real_.is_fast && active_target() != SimdTarget::kBaseline) {
    return neon::pairs_row(*this, a, a_step, b, b_step, out, count);
  }
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = exact(a[i * a_step], b[i * b_step]);
}

template BytePairs BytePairs::sum<std::int8_t>(const Rescale&, const Rescale&, bool, const Requantize&);
template BytePairs BytePairs::sum<std::uint8_t>(const Rescale&, const Rescale&, bool, const Requantize&);
template BytePairs BytePairs::product<std::int8_t>(std::int32_t, std::int32_t, const Requantize&);
template BytePairs BytePairs::product<std::uint8_t>(std::int32_t, std::int32_t, const Requantize&);

}  // namespace reef::kernels
