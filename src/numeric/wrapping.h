// SPDX-License-Identifier: Apache-2.0
// Sums, differences and products that wrap around as two's complement registers do, without signed overflow.
// Floating-point numbers, which do not overflow into undefined behaviour, are added and multiplied plainly.
#pragma once

#include <cstdint>
#include <type_traits>

namespace reef::numeric {

// At least 32 bits: narrower unsigned numbers would be promoted to int, where a product of 16-bit ones overflows.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<(sizeof(T) <= sizeof(std::uint32_t)), std::uint32_t, std::uint64_t>>;

template <typename T>
constexpr T wrapping_sum(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <typename T>
constexpr T wrapping_difference(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <typename T>
constexpr T wrapping_product(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

}  // namespace reef::numeric
