// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace reef {
namespace {

using State = std::array<std::uint32_t, 8>;

bool is_prime(int n) {
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// The standard's constants are the first 32 bits of the fractional parts of square roots (initial state) and cube roots
// (round constants) of the first primes; a long double holds enough of them.
template <std::size_t N>
std::array<std::uint32_t, N> root_constants(long double (*root)(long double)) {
  std::array<std::uint32_t, N> constants{};
  int prime = 1;
  for (std::uint32_t& constant : constants) {
    do ++prime;
    while (!is_prime(prime));
    const long double value = root(prime);
    constant = static_cast<std::uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return constants;
}

void process_block(State& state, const std::uint8_t* block) {
  static const auto constants = root_constants<64>([](long double x) { return std::cbrt(x); });
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 | static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State step = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += step[i];
}

}  // namespace

std::string sha256_hex(std::span<const std::uint8_t> data) {
  State state = root_constants<8>([](long double x) { return std::sqrt(x); });
  const std::size_t whole = data.size() / 64 * 64;
  for (std::size_t i = 0; i < whole; i += 64) process_block(state, data.data() + i);
  std::vector<std::uint8_t> tail(data.begin() + static_cast<std::ptrdiff_t>(whole), data.end());
  tail.push_back(0x80);
  while (tail.size() % 64 != 56) tail.push_back(0);
  const std::uint64_t bits = static_cast<std::uint64_t>(data.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<std::uint8_t>(bits >> shift));
  for (std::size_t i = 0; i < tail.size(); i += 64) process_block(state, tail.data() + i);
  std::string hex;
  for (const std::uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace reef
