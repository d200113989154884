// SPDX-License-Identifier: Apache-2.0
// elementwise/float_functions.h for one target, REEF_LANES numbers at a time. The polynomials are those of Cephes (S.
// Moshier, 1992). No include guard: it is included once per target, see simd/targets.h.

constexpr std::int64_t kLanes = REEF_LANES;
using Floats [[gnu::vector_size(REEF_LANES * 4), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(REEF_LANES * 4)]] = std::int32_t;

// 2^n for -126 <= n <= 127.
[[gnu::always_inline]] inline void set_power(const Ints& n, Floats& power) {
  const Ints bits = (n + 127) << 23;
  std::memcpy(&power, &bits, sizeof power);
}

// Takes x apart into n * ln 2 + r with an integer n, and computes exp(r) - 1 by a polynomial.
[[gnu::always_inline]] inline void reduce_exponent(const Floats& x, Floats& n, Floats& less_one) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  n = (x * 1.44269504088896341f + kRounder) - kRounder;
  const Floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  less_one = y * (r * r) + r;
}

// x = n * ln 2 + r, then 2^n times a polynomial of r. 2^n is applied in two steps: it may be beyond what a float holds
// though the result is not.
[[gnu::always_inline]] inline void exponential(const Floats& x, Floats& result) {
  constexpr float kHighest = 88.8f, kLowest = -104.0f;  // beyond: infinity, 0
  const Floats raised = x < kLowest ? kLowest - Floats{} : x;
  const Floats limited = raised > kHighest ? kHighest - Floats{} : raised;
  Floats n, y;
  reduce_exponent(limited, n, y);
  y = y + 1.0f;
#if REEF_LANES == 16
  // One instruction, which rounds once, as the two steps below do.
  result = _mm512_maskz_scalef_ps(0xFFFF, y, n);
#else
  const Floats known = n == n ? n : Floats{};  // NaN is no integer
  const Ints whole = __builtin_convertvector(known, Ints), half = whole >> 1;
  Floats first, second;
  set_power(half, first);
  set_power(whole - half, second);
  result = y * first * second;
#endif
}

struct Exponential {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) { exponential(x, result); }
};

// x where x >= 0, exp(x) - 1 below. With x = n * ln 2 + r, exp(x) - 1 is 2^n * (exp(r) - 1) + (2^n - 1): nothing that
// matters is lost near 0, where n is 0.
struct Elu {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    constexpr float kLowest = -30.0f;  // from far above on it is -1
    const Floats negative = x < 0.0f ? x : Floats{};
    const Floats limited = negative < kLowest ? kLowest - Floats{} : negative;
    Floats n, y;
    reduce_exponent(limited, n, y);
    Floats power;
    set_power(__builtin_convertvector(n, Ints), power);
    const Floats below = y * power + (power - 1.0f);
    result = x < 0.0f ? below : x;
  }
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

// exp(-a * a / 2) for a >= 0. What rounding the square loses is made good: it would be multiplied by the square.
[[gnu::always_inline]] inline void exponential_of_minus_half_square(const Floats& a, Floats& result) {
  Ints bits;
  std::memcpy(&bits, &a, sizeof bits);
  bits &= ~0xFFF;  // 12 bits of the mantissa are left: the products below are exact
  Floats high;
  std::memcpy(&high, &bits, sizeof high);
  const Floats low = a - high, square = a * a;
  const Floats lost = ((high * high - square) + 2.0f * high * low) + low * low;
  Floats e;
  exponential(square * -0.5f, e);
  const Floats limited = a < 16.0f ? lost * 0.5f : Floats{};  // beyond, the result is 0; the above may be infinite
  result = e - e * limited;
}

// x times the probability that a standard normal number is below x: x / 2 * erfc(-x / sqrt(2)).
struct Gelu {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    const Floats z = x * -0.70710678118654752440f, a = z < 0.0f ? -z : z, square = z * z;
    Floats t = square * 7.853861353153693e-5f - 8.010193625184903e-4f;
    t = t * square + 5.188327685732524e-3f;
    t = t * square - 2.685381193529856e-2f;
    t = t * square + 1.128358514861418e-1f;
    t = t * square - 3.761262582423300e-1f;
    t = t * square + 1.128379165726710e+0f;
    const Floats near = 1.0f - z * t;
    const Floats q = 1.0f / a, y = q * q;
    Floats p = y * 2.326819970068386e-2f - 1.387039388740657e-1f;
    p = p * y + 3.687424674597105e-1f;
    p = p * y - 5.824733027278666e-1f;
    p = p * y + 6.210004621745983e-1f;
    p = p * y - 4.944515323274145e-1f;
    p = p * y + 3.404879937665872e-1f;
    p = p * y - 2.741127028184656e-1f;
    p = p * y + 5.638259427386472e-1f;
    Floats r = y * -1.047766399936249e+1f + 1.297719955372516e+1f;
    r = r * y - 7.495518717768503e+0f;
    r = r * y + 2.921019019210786e+0f;
    r = r * y - 1.015265279202700e+0f;
    r = r * y + 4.218463358204948e-1f;
    r = r * y - 2.820767439740514e-1f;
    r = r * y + 5.641895067754075e-1f;
    Floats e;
    exponential_of_minus_half_square(x < 0.0f ? -x : x, e);
    const Floats tail = e * q * (a < 2.0f ? p : r);
    const Floats far = z < 0.0f ? 2.0f - tail : tail;
    result = 0.5f * x * (a < 1.0f ? near : far);
  }
};

// The usual approximation.
struct GeluByTanh {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    Floats curve;
    HyperbolicTangent::apply(0.79788456080286535588f * (x + 0.044715f * x * x * x), curve);
    result = 0.5f * x * (1.0f + curve);
  }
};

// IEEE 754 defines the square root to the bit, so every instruction for it gives the same.
[[gnu::always_inline]] inline void square_root(const Floats& x, Floats& result) {
#if REEF_LANES == 16
  result = _mm512_maskz_sqrt_ps(0xFFFF, x);
#elif REEF_AVX2
  result = _mm256_sqrt_ps(x);
#elif defined(__x86_64__) || defined(__aarch64__)
  for (std::int64_t i = 0; i < kLanes; i += 4) {
    Quarter four;
    std::memcpy(&four, reinterpret_cast<const float*>(&x) + i, sizeof four);
#if defined(__x86_64__)
    four = _mm_sqrt_ps(four);
#else
    four = vsqrtq_f32(four);
#endif
    std::memcpy(reinterpret_cast<float*>(&result) + i, &four, sizeof four);
  }
#else
  for (std::int64_t i = 0; i < kLanes; ++i) result[i] = std::sqrt(x[i]);
#endif
}

struct SquareRoot {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) { square_root(x, result); }
};

struct InverseSquareRoot {
  [[gnu::always_inline]] static void apply(const Floats& x, Floats& result) {
    Floats root;
    square_root(x, root);
    result = 1.0f / root;
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

// exp(x) for x <= 0 as the GNU C library computes it (Szabolcs Nagy's algorithm): 2^(k/32) from a table times a
// polynomial, in double.
constexpr std::int64_t kWide = REEF_LANES / 2;
using Doubles [[gnu::vector_size(kWide * 8)]] = double;
using Longs [[gnu::vector_size(kWide * 8)]] = std::int64_t;
using Singles [[gnu::vector_size(kWide * 4), gnu::aligned(4), gnu::may_alias]] = float;

[[gnu::always_inline]] inline void c_exponential(const Singles& x, Singles& result) {
  constexpr double kSteps = 32, kRounder = 6755399441055744.0;    // 1.5 * 2^52: its last bits are the integer added
  const Singles limited = x < -104.0f ? -104.0f - Singles{} : x;  // 0 from there on
  const Doubles z = __builtin_convertvector(limited, Doubles) * (0x1.71547652b82fep+0 * kSteps);
  const Doubles rounded = z + kRounder;
  const Doubles r = z - (rounded - kRounder), r2 = r * r;
  Longs k, t;
  std::memcpy(&k, &rounded, sizeof k);
  REEF_LOOK_UP(k, t);
  t += k << 47;
  Doubles power;
  std::memcpy(&power, &t, sizeof power);
  const Doubles high = r * (0x1.c6af84b912394p-5 / kSteps / kSteps / kSteps) + 0x1.ebfce50fac4f3p-3 / kSteps / kSteps;
  const Doubles low = r * (0x1.62e42ff0c52d6p-1 / kSteps) + 1.0;
  result = __builtin_convertvector((high * r2 + low) * power, Singles);
}

void c_exponentials(const float* in, std::int64_t count, float* out) {
  std::int64_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    Singles result;
    c_exponential(*reinterpret_cast<const Singles*>(in + i), result);
    *reinterpret_cast<Singles*>(out + i) = result;
  }
  if (i == count) return;
  Singles rest = {}, result;
  std::memcpy(&rest, in + i, static_cast<std::size_t>(count - i) * sizeof(float));
  c_exponential(rest, result);
  std::memcpy(out + i, &result, static_cast<std::size_t>(count - i) * sizeof(float));
}

// The largest number, NaN left out; the lowest there is if there is none.
float largest(const float* in, std::int64_t count) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  Floats best = kLowest - Floats{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats x = *reinterpret_cast<const Floats*>(in + i);
    best = best < x ? x : best;
  }
  float result = kLowest;
  for (; i < count; ++i) result = std::max(result, in[i]);
  for (std::int64_t lane = 0; lane < kLanes; ++lane) result = std::max(result, best[lane]);
  return result;
}
