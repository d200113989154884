// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/row_hash.h"

#include <cstring>

#include "formats/darwinn/parameters/layer_parameters.h"

namespace reef::darwinn {
namespace {

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ull;  // odd, without structure

// Every bit of the result depends on every bit of `x` (the finalizer of splitmix64).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::uint64_t hash_row(std::span<const std::uint8_t> row) {
  std::uint64_t hash = kBase;
  for (std::size_t i = 0; i < kChunkAlignment; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, &row[i], 8);
    hash = mix(hash ^ word) + kBase;
  }
  return hash;
}

}  // namespace

RowHashes::RowHashes(std::span<const std::uint8_t> bytes) : before_{0}, powers_{1} {
  for (std::size_t at = 0; at + kChunkAlignment <= bytes.size(); at += kChunkAlignment) {
    before_.push_back(before_.back() * kBase + hash_row(bytes.subspan(at, kChunkAlignment)));
    powers_.push_back(powers_.back() * kBase);
  }
}

std::uint64_t RowHashes::of_run(std::size_t first, std::size_t count) const {
  return before_[first + count] - before_[first] * powers_[count];
}

}  // namespace reef::darwinn
