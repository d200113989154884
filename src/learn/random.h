// SPDX-License-Identifier: Apache-2.0
// Pseudo-random numbers that are the same on every machine and with every standard library (SplitMix64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace reef::learn {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, bound); the bias, below bound / 2^64, does not matter here.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace reef::learn
