// SPDX-License-Identifier: Apache-2.0
// recurrent/float_curves.h, eight numbers at a time. No include guard: it is included once per target, see
// simd/targets.h.

using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(32)]] = std::int32_t;

// x = m * ln 2 + r. Precondition: |x| < 200.
[[gnu::always_inline]] inline void reduce(const Floats& x, Ints& m, Floats& r) {
  const Floats t = x * 1.44269504088896341f + 0.5f;
  const Ints towards_zero = __builtin_convertvector(t, Ints);
  m = towards_zero + (t < __builtin_convertvector(towards_zero, Floats));  // true is -1: rounded down
  const Floats whole = __builtin_convertvector(m, Floats);
  const Floats first = whole * -0.693359375f + x;
  r = whole * 2.12194440e-4f + first;
}

// y * 2^m for -250 < m < 250, in two steps: the first is exact, so that there is one rounding at most.
[[gnu::always_inline]] inline void scale_by_power(const Floats& y, const Ints& m, Floats& result) {
  const Ints half = m >> 1;
  const Ints bits[2] = {(half + 127) << 23, (m - half + 127) << 23};
  Floats powers[2];
  std::memcpy(powers, bits, sizeof powers);
  result = y * powers[0] * powers[1];
}

struct Of29 {
  static constexpr float kLargest = CurvesOf29::kLargest;

  [[gnu::always_inline]] static void exponential(const Floats& x, Floats& result) {
    Ints m;
    Floats r;
    reduce(x, m, r);
    const Floats r2 = r * r;
    const Floats low = r2 * 1.37449637986719608306884765625e-3f + 4.166965186595916748046875e-2f;
    const Floats odd = r2 * 8.36894474923610687255859375e-3f + 0.16666518151760101318359375f;
    const Floats even = r2 * low + 0.49999988079071044921875f;
    const Floats p = r * odd + even;
    scale_by_power(r2 * p + (r + 1.0f), m, result);
  }

  [[gnu::always_inline]] static void tanh(const Floats& value, Floats& result) {
    constexpr float kLimit = 7.90531110763549805f, kTiny = 0.0004f;
    const Floats below = value < kLimit ? value : kLimit - Floats{};
    const Floats x = below > -kLimit ? below : -kLimit - Floats{};
    const Floats x2 = x * x;
    Floats p = x2 * -2.76076847742355e-16f + 2.00018790482477e-13f;
    p = x2 * p + -8.60467152213735e-11f;
    p = x2 * p + 5.12229709037114e-08f;
    p = x2 * p + 1.48572235717979e-05f;
    p = x2 * p + 6.37261928875436e-04f;
    p = x2 * p + 4.89352455891786e-03f;
    p = x * p;
    Floats q = x2 * 1.19825839466702e-06f + 1.18534705686654e-04f;
    q = x2 * q + 2.26843463243900e-03f;
    q = x2 * q + 4.89352518554385e-03f;
    const Floats ratio = p / q, size = value < 0.0f ? -value : value;
    result = size < kTiny ? x : ratio;
  }
};

struct OfCurrent {
  static constexpr float kLargest = CurvesOfCurrent::kLargest;

  [[gnu::always_inline]] static void exponential(const Floats& x, Floats& result) {
    Ints m;
    Floats r, root;
    reduce(x * 0.5f, m, r);
    const Floats r2 = r * r;
    const Floats even = r2 * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
    const Floats odd = r2 * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
    const Floats p = r * odd + even;
    scale_by_power(r2 * p + (r + 1.0f), m, root);
    result = root * root;
  }

  [[gnu::always_inline]] static void tanh(const Floats& value, Floats& result) {
    constexpr float kLimit = 7.90738964080810547f;
    const Floats below = value < kLimit ? value : kLimit - Floats{};
    const Floats x = below > -kLimit ? below : -kLimit - Floats{};
    const Floats x2 = x * x;
    Floats p = x2 * 1.394553628e-8f + 2.102733560e-5f;
    p = p * x2 + 3.520756727e-3f;
    p = p * x2 + 1.340216100e-1f;
    Floats q = x2 * 8.015776984e-7f + 3.326951409e-4f;
    q = q * x2 + 2.597254514e-2f;
    q = q * x2 + 4.673548340e-1f;
    q = q * x2 + 1.0f;
    result = (x2 * x * p + x) / q;
  }
};

template <typename Release>
struct HyperbolicTangent {
  [[gnu::always_inline]] static void apply(const Floats& value, Floats& result) {
    Floats curve;
    Release::tanh(value, curve);
    result = value == value ? curve : value;
  }
};

template <typename Release>
struct Logistic {
  [[gnu::always_inline]] static void apply(const Floats& value, Floats& result) {
    constexpr float kLowest = -104.0f;  // below, the exponential is 0
    const Floats limited = value < Release::kLargest ? value : Release::kLargest - Floats{};  // NaN, too
    const Floats x = limited > kLowest ? limited : kLowest - Floats{};
    Floats e;
    Release::exponential(x, e);
    const Floats counted = limited < kLowest ? Floats{} : e;
    const Floats curve = counted / (1.0f + counted);
    result = value == value ? curve : value;
  }
};

template <typename Function>
void map_in_place(float* values, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Floats result;
    Function::apply(*reinterpret_cast<const Floats*>(values + i), result);
    *reinterpret_cast<Floats*>(values + i) = result;
  }
  if (i == count) return;
  Floats rest = {}, result;
  std::memcpy(&rest, values + i, static_cast<std::size_t>(count - i) * sizeof(float));
  Function::apply(rest, result);
  std::memcpy(values + i, &result, static_cast<std::size_t>(count - i) * sizeof(float));
}
