// SPDX-License-Identifier: Apache-2.0
#include "ir/pseudo_random.h"

#include <cstring>

namespace reef::ir {

void fill_pseudo_random(DataType type, std::uint32_t seed, std::span<std::byte> target) {
  std::uint32_t state = seed;
  const auto next = [&state] { return state = state * 1664525u + 1013904223u; };
  if (type != DataType::kFloat32 && type != DataType::kInt32) {
    for (std::byte& value : target) value = static_cast<std::byte>(next() >> 24);
    return;
  }
  for (std::size_t i = 0; i + 4 <= target.size(); i += 4) {
    const std::uint32_t s = next();
    const float real = static_cast<float>(s >> 8) / 16777216.0f;
    const std::uint32_t whole = s >> 24;
    std::memcpy(target.data() + i, type == DataType::kFloat32 ? static_cast<const void*>(&real) : &whole, 4);
  }
}

}  // namespace reef::ir
