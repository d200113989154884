// SPDX-License-Identifier: Apache-2.0
// numeric/fixed_point_math.h's logistic and tanh on vectors of 16-bit numbers, step by step. No include guard: it is
// included once per target, see simd/targets.h.
//
// The scalar functions' saturation of -1 times -1 is left out: no such product comes up, as the test over all numbers
// shows.

using Vec [[gnu::vector_size(REEF_VECTOR_BYTES)]] = std::int16_t;
constexpr std::int64_t kNumbers = REEF_VECTOR_BYTES / 2;

// Operations that no C++ operator has: round(a * b / 2^15), halves up; and sums that saturate.
#if defined(__x86_64__)
#include "kernels/simd/vectors_body.h"

[[gnu::always_inline]] inline Vec multiply(Vec a, Vec b) {
  return reinterpret_cast<Vec>(REEF_MM(mulhrs_epi16)(reinterpret_cast<Ints>(a), reinterpret_cast<Ints>(b)));
}
[[gnu::always_inline]] inline Vec add_saturated(Vec a, Vec b) {
  return reinterpret_cast<Vec>(REEF_MM(adds_epi16)(reinterpret_cast<Ints>(a), reinterpret_cast<Ints>(b)));
}
#else
[[gnu::always_inline]] inline Vec multiply(Vec a, Vec b) {
  return reinterpret_cast<Vec>(vqrdmulhq_s16(reinterpret_cast<int16x8_t>(a), reinterpret_cast<int16x8_t>(b)));
}
[[gnu::always_inline]] inline Vec add_saturated(Vec a, Vec b) {
  return reinterpret_cast<Vec>(vqaddq_s16(reinterpret_cast<int16x8_t>(a), reinterpret_cast<int16x8_t>(b)));
}
#endif

// A constant as numeric::Fixed<int16_t, ...>::constant makes it, from 32 bits.
template <std::int32_t kRaw32>
[[gnu::always_inline]] inline Vec constant() {
  return Vec{} + static_cast<std::int16_t>(numeric::rounding_divide_by_power_of_two(kRaw32, 16));
}

// x * 2^-kExponent, halves away from zero.
template <int kExponent>
[[gnu::always_inline]] inline Vec halved(Vec x) {
  constexpr std::int16_t kMask = (1 << kExponent) - 1;
  const Vec threshold = static_cast<std::int16_t>(kMask >> 1) - (x >> 15);  // one more for negative numbers
  return (x >> kExponent) - ((x & kMask) > threshold);
}

// exp(a) for a in [-1/4, 0), no integer bits.
[[gnu::always_inline]] inline Vec exp_of_quarter(Vec a) {
  const Vec eighth = constant<1895147668>(), third = constant<715827883>();
  const Vec x = a + static_cast<std::int16_t>(1 << 12);
  const Vec x2 = multiply(x, x), x3 = multiply(x2, x), x4 = multiply(x2, x2);
  const Vec higher_terms = halved<1>(multiply(halved<2>(x4) + x3, third) + x2);
  return add_saturated(eighth, multiply(eighth, x + higher_terms));
}

// exp(a) for a < 0 with kBits integer bits. (Of 0 it gives something else.)
template <int kBits>
[[gnu::always_inline]] inline Vec exp_of_negative(Vec a) {
  constexpr int kFraction = 15 - kBits;
  constexpr auto kQuarter = static_cast<std::int16_t>(1 << (kFraction - 2));
  const Vec modulo_quarter = (a & static_cast<std::int16_t>(kQuarter - 1)) - kQuarter;
  const Vec rest = modulo_quarter - a;
  Vec result = exp_of_quarter(modulo_quarter << kBits);
  const auto times = [&]<int kExponent, std::int32_t kFactor>() {
    if constexpr (kExponent < kBits) {
      const Vec has_bit = (rest & static_cast<std::int16_t>(1 << (kFraction + kExponent))) != 0;
      result = has_bit ? multiply(result, constant<kFactor>()) : result;
    }
  };
  times.template operator()<-2, 1672461947>();
  times.template operator()<-1, 1302514674>();
  times.template operator()<0, 790015084>();
  times.template operator()<1, 290630308>();
  times.template operator()<2, 39332535>();
  times.template operator()<3, 720401>();
  times.template operator()<4, 242>();
  if constexpr (kBits > 5) result = a < constant<-(1 << (36 - kBits))>() ? Vec{} : result;
  return result;
}

// 2 / (1 + a) for a in [0, 1], two integer bits.
[[gnu::always_inline]] inline Vec two_over_one_plus(Vec a) {
  using Unsigned [[gnu::vector_size(REEF_VECTOR_BYTES)]] = std::uint16_t;
  const Vec half_denominator = reinterpret_cast<Vec>((reinterpret_cast<Unsigned>(a) + std::uint16_t{1 << 15}) >> 1);
  Vec x = constant<1515870810>() + multiply(half_denominator, constant<-1010580540>());
  for (int i = 0; i < 3; ++i) {
    const Vec error = static_cast<std::int16_t>(1 << 13) - multiply(half_denominator, x);
    const Vec step = multiply(x, error), doubled = add_saturated(step, step);
    x += add_saturated(doubled, doubled);
  }
  return x;
}

struct Logistic {
  [[gnu::always_inline]] static Vec of(Vec a) {
    const Vec halves = two_over_one_plus(exp_of_negative<3>(a > 0 ? -a : a));
    const Vec of_magnitude = add_saturated(halves, halves);
    const Vec result = a > 0 ? of_magnitude : static_cast<std::int16_t>(0x7fff) - of_magnitude;
    return a == 0 ? Vec{} + static_cast<std::int16_t>(1 << 14) : result;
  }
};

template <int kBits>
struct Tanh {
  [[gnu::always_inline]] static Vec of(Vec a) {
    const Vec less_one =
        two_over_one_plus(exp_of_negative<kBits + 1>(a > 0 ? -a : a)) - static_cast<std::int16_t>(1 << 13);
    const Vec doubled = add_saturated(less_one, less_one), of_magnitude = add_saturated(doubled, doubled);
    return a == 0 ? Vec{} : a > 0 ? of_magnitude : -of_magnitude;
  }
};

template <typename Curve>
void map(const std::int16_t* values, std::int64_t count, std::int16_t* result) {
  std::int64_t i = 0;
  Vec x;
  for (; i + kNumbers <= count; i += kNumbers) {
    std::memcpy(&x, values + i, sizeof x);
    x = Curve::of(x);
    std::memcpy(result + i, &x, sizeof x);
  }
  if (i == count) return;
  const auto bytes = static_cast<std::size_t>(count - i) * sizeof(std::int16_t);
  x = Vec{};
  std::memcpy(&x, values + i, bytes);
  x = Curve::of(x);
  std::memcpy(result + i, &x, bytes);
}
