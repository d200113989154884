// SPDX-License-Identifier: Apache-2.0
// The Fourier transform of complex numbers in double precision, for lengths that are powers of two: results rounded to
// float differ from the exact ones by the last bit at most.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

namespace reef::kernels {

class Fft {
 public:
  // `length`: a power of two.
  explicit Fft(std::size_t length) : length_(length), roots_(length / 2) {
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
      roots_[i] = {std::cos(angle), std::sin(angle)};
    }
  }
  std::size_t length() const { return length_; }

  // values[k] becomes the sum over n of values[n] * exp(-2 pi i n k / length).
  void operator()(std::span<std::complex<double>> values) const {
    reverse_bits(values);
    for (std::size_t half = 1; half < length_; half *= 2) {
      const std::size_t step = length_ / (2 * half);
      for (std::size_t begin = 0; begin < length_; begin += 2 * half) {
        for (std::size_t i = 0; i < half; ++i) {
          std::complex<double>&low = values[begin + i], &high = values[begin + half + i];
          const std::complex<double> turned = high * roots_[i * step];
          high = low - turned;
          low += turned;
        }
      }
    }
  }

 private:
  void reverse_bits(std::span<std::complex<double>> values) const {
    std::size_t reversed = 0;
    for (std::size_t i = 0; i + 1 < length_; ++i) {
      if (i < reversed) std::swap(values[i], values[reversed]);
      std::size_t bit = length_ / 2;
      for (; (reversed & bit) != 0; bit /= 2) reversed ^= bit;
      reversed |= bit;
    }
  }

  std::size_t length_;
  std::vector<std::complex<double>> roots_;
};

}  // namespace reef::kernels
