// SPDX-License-Identifier: Apache-2.0
// The Fourier transform of real numbers, on int16, int32 or float, as TFLite-Micro's signal library computes it.
//
// That library uses kissfft, whose fixed-point form divides by the radix in every stage and rounds every product; the
// order of stages (radix 4 first, one radix 2 last) therefore shows in the results, and we keep it. The result is
// scaled by 1 / length for integers. Lengths are powers of two.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

namespace reef::kernels {

template <typename T>
struct FftComplex {
  T real = 0, imaginary = 0;
};

// Arithmetic of one number type. Integers wrap where they overflow.
template <typename T>
struct FftNumber {
  using Unsigned = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) == 2, std::int32_t, std::int64_t>;
  using UnsignedWide = std::make_unsigned_t<Wide>;
  static constexpr int kFractionBits = 8 * sizeof(T) - 1;
  static constexpr Wide kMax = std::numeric_limits<T>::max();

  static T add(T a, T b) { return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)); }
  static T subtract(T a, T b) { return static_cast<T>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b)); }
  static T round(UnsignedWide x) {
    return static_cast<T>(static_cast<Wide>(x + (UnsignedWide{1} << (kFractionBits - 1))) >> kFractionBits);
  }
  static UnsignedWide product(T a, T b) { return static_cast<UnsignedWide>(static_cast<Wide>(a) * b); }
  static T divide(T x, int divisor) { return round(product(x, static_cast<T>(kMax / divisor))); }
  static T half_sum(T a, T b) {
    if constexpr (sizeof(T) == 2) return static_cast<T>((a + b) >> 1);
    return static_cast<T>(add(a, b) >> 1);
  }
  static FftComplex<T> multiply(FftComplex<T> a, FftComplex<T> b) {
    return {round(product(a.real, b.real) - product(a.imaginary, b.imaginary)),
            round(product(a.real, b.imaginary) + product(a.imaginary, b.real))};
  }
  static T from_unit(double x) { return static_cast<T>(std::floor(0.5 + static_cast<double>(kMax) * x)); }
};

template <>
struct FftNumber<float> {
  static float add(float a, float b) { return a + b; }
  static float subtract(float a, float b) { return a - b; }
  static float divide(float x, int) { return x; }
  static float half_sum(float a, float b) { return (a + b) * 0.5f; }
  static FftComplex<float> multiply(FftComplex<float> a, FftComplex<float> b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
  static float from_unit(double x) { return static_cast<float>(x); }
};

template <typename T>
class RealFft {
 public:
  using Complex = FftComplex<T>;

  // `length` is a power of two, at least 4.
  explicit RealFft(std::int64_t length) : half_(length / 2), work_(static_cast<std::size_t>(half_)) {
    for (std::int64_t i = 0; i < half_; ++i) {
      twiddles_.push_back(unit_circle(-2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(half_)));
    }
    for (std::int64_t i = 0; i < half_ / 2; ++i) {
      last_twiddles_.push_back(
          unit_circle(-std::numbers::pi * (static_cast<double>(i + 1) / static_cast<double>(half_) + 0.5)));
    }
  }

  // `input` holds `length` numbers, `output` length / 2 + 1 complex ones.
  void operator()(const T* input, T* output) {
    transform(work_.data(), reinterpret_cast<const Complex*>(input), half_, 1);
    separate(reinterpret_cast<Complex*>(output));
  }

 private:
  using N = FftNumber<T>;

  static Complex unit_circle(double phase) { return {N::from_unit(std::cos(phase)), N::from_unit(std::sin(phase))}; }
  static Complex add(Complex a, Complex b) { return {N::add(a.real, b.real), N::add(a.imaginary, b.imaginary)}; }
  static Complex subtract(Complex a, Complex b) {
    return {N::subtract(a.real, b.real), N::subtract(a.imaginary, b.imaginary)};
  }
  static Complex divide(Complex a, int divisor) {
    return {N::divide(a.real, divisor), N::divide(a.imaginary, divisor)};
  }

  // A transform of `count` numbers, `stride` apart.
  void transform(Complex* out, const Complex* in, std::int64_t count, std::int64_t stride) const {
    const int radix = count % 4 == 0 ? 4 : 2;
    const std::int64_t part = count / radix;
    for (int i = 0; i < radix; ++i) {
      if (part == 1) {
        out[i] = in[i * stride];
      } else {
        transform(out + i * part, in + i * stride, part, stride * radix);
      }
    }
    if (radix == 4) {
      combine_4(out, part, stride);
    } else {
      combine_2(out, part, stride);
    }
  }

  void combine_2(Complex* out, std::int64_t part, std::int64_t stride) const {
    for (std::int64_t i = 0; i < part; ++i) {
      const Complex a = divide(out[i], 2);
      const Complex b = N::multiply(divide(out[i + part], 2), twiddle(i * stride));
      out[i + part] = subtract(a, b);
      out[i] = add(a, b);
    }
  }

  void combine_4(Complex* out, std::int64_t part, std::int64_t stride) const {
    for (std::int64_t i = 0; i < part; ++i) {
      const Complex a = divide(out[i], 4);
      const Complex b = N::multiply(divide(out[i + part], 4), twiddle(i * stride));
      const Complex c = N::multiply(divide(out[i + 2 * part], 4), twiddle(2 * i * stride));
      const Complex d = N::multiply(divide(out[i + 3 * part], 4), twiddle(3 * i * stride));
      const Complex a_plus_c = add(a, c), a_minus_c = subtract(a, c);
      const Complex b_plus_d = add(b, d), b_minus_d = subtract(b, d);
      out[i] = add(a_plus_c, b_plus_d);
      out[i + 2 * part] = subtract(a_plus_c, b_plus_d);
      out[i + part] = {N::add(a_minus_c.real, b_minus_d.imaginary), N::subtract(a_minus_c.imaginary, b_minus_d.real)};
      out[i + 3 * part] = {N::subtract(a_minus_c.real, b_minus_d.imaginary),
                           N::add(a_minus_c.imaginary, b_minus_d.real)};
    }
  }

  // From the transform of pairs taken as complex numbers to that of the real numbers.
  void separate(Complex* out) const {
    const Complex first = divide(work_[0], 2);
    out[0] = {N::add(first.real, first.imaginary), 0};
    out[half_] = {N::subtract(first.real, first.imaginary), 0};
    for (std::int64_t k = 1; k <= half_ / 2; ++k) {
      const Complex mirrored = work_[static_cast<std::size_t>(half_ - k)];
      const Complex a = divide(work_[static_cast<std::size_t>(k)], 2);
      const Complex b = divide({mirrored.real, N::subtract(0, mirrored.imaginary)}, 2);
      const Complex even = add(a, b);
      const Complex odd = N::multiply(subtract(a, b), last_twiddles_[static_cast<std::size_t>(k - 1)]);
      out[k] = {N::half_sum(even.real, odd.real), N::half_sum(even.imaginary, odd.imaginary)};
      out[half_ - k] = {half_difference(even.real, odd.real), half_difference(odd.imaginary, even.imaginary)};
    }
  }
  static T half_difference(T a, T b) {
    if constexpr (sizeof(T) == 2) return static_cast<T>((a - b) >> 1);
    if constexpr (std::is_same_v<T, float>)
      return (a - b) * 0.5f;
    else
      return static_cast<T>(N::subtract(a, b) >> 1);
  }

  Complex twiddle(std::int64_t i) const { return twiddles_[static_cast<std::size_t>(i)]; }

  std::int64_t half_;
  std::vector<Complex> work_, twiddles_, last_twiddles_;
};

}  // namespace reef::kernels
