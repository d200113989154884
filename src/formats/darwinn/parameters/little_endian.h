// SPDX-License-Identifier: Apache-2.0
// 32-bit words of a parameter blob: little-endian, on any host. The caller has checked that the word is inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/at.h"

namespace reef::darwinn {

inline void store_u32(std::span<std::uint8_t> bytes, std::int64_t offset, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at(offset + i)] = static_cast<std::uint8_t>(value >> (8 * i));
}

inline std::uint32_t load_u32(std::span<const std::uint8_t> bytes, std::int64_t offset) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::uint32_t{bytes[at(offset + i)]} << (8 * i);
  return value;
}

}  // namespace reef::darwinn
