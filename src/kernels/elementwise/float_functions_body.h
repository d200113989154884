// SPDX-License-Identifier: Apache-2.0
// elementwise/float_functions.h for one target, 8 numbers at a time. The polynomials are those of Cephes (S. Moshier,
// 1992). No include guard: it is included once per target, see simd/targets.h.

using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(32)]] = std::int32_t;
constexpr std::int64_t kLanes = 8;

// 2^n for -126 <= n <= 127.
[[gnu::always_inline]] inline void set_power(const Ints& n, Floats& power) {
  const Ints bits = (n + 127) << 23;
  std::memcpy(&power, &bits, sizeof power);
}

// x = n * ln 2 + r, then 2^n times a polynomial of r. 2^n is applied in two steps: it may be beyond what a float holds
// though the result is not.
[[gnu::always_inline]] inline void exponential(const Floats& x, Floats& result) {
  constexpr float kHighest = 88.8f, kLowest = -104.0f;  // beyond: infinity, 0
  constexpr float kRounder = 12582912.0f;               // 1.5 * 2^23: what is added to it is rounded to an integer
  const Floats raised = x < kLowest ? kLowest - Floats{} : x;
  const Floats limited = raised > kHighest ? kHighest - Floats{} : raised;
  const Floats n = (limited * 1.44269504088896341f + kRounder) - kRounder;
  const Floats r = (limited - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = (y * (r * r) + r) + 1.0f;
  const Floats known = n == n ? n : Floats{};  // NaN is no integer
  const Ints whole = __builtin_convertvector(known, Ints), half = whole >> 1;
  Floats first, second;
  set_power(half, first);
  set_power(whole - half, second);
  result = y * first * second;
}

struct Exponential {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) { exponential(x, result); }
};

struct Logistic {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    constexpr float kAlmostOne = 16.619047164916992188f, kAlmostExponential = -9.0f;
    const Floats one = 1.0f - Floats{}, negative = x < 0.0f ? x : -x;
    Floats small;  // at most 1: nothing overflows
    exponential(negative, small);
    const Floats above = x < 0.0f ? small : one, below = x < kAlmostExponential ? one : small + 1.0f;
    const Floats value = above / below;
    result = x > kAlmostOne ? one : value;
  }
};

struct HyperbolicTangent {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    const Floats size = x < 0.0f ? -x : x;
    Floats doubled;
    exponential(size * 2.0f, doubled);
    const Floats far = 1.0f - 2.0f / (doubled + 1.0f);
    const Floats z = x * x;
    Floats y = z * -5.70498872745e-3f + 2.06390887954e-2f;
    y = y * z - 5.37397155531e-2f;
    y = y * z + 1.33314422036e-1f;
    y = y * z - 3.33332819422e-1f;
    const Floats near = y * z * x + x;
    const Floats with_sign = x < 0.0f ? -far : far;
    result = size < 0.625f ? near : with_sign;
  }
};

template <typename Function>
void map_floats(const float* in, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Floats result;
    Function::apply(*reinterpret_cast<const Floats*>(in + i), result);
    *reinterpret_cast<Floats*>(out + i) = result;
  }
  if (i == count) return;
  // The rest in a vector too, so that an element's bits do not depend on its place.
  Floats rest = {}, result;
  std::memcpy(&rest, in + i, static_cast<std::size_t>(count - i) * sizeof(float));
  Function::apply(rest, result);
  std::memcpy(out + i, &result, static_cast<std::size_t>(count - i) * sizeof(float));
}
