// SPDX-License-Identifier: Apache-2.0
// Integers of 2 or 4 bits that share bytes, the first in the lowest bits.
#pragma once

#include <cstdint>

namespace reef::numeric {

struct PackedFormat {
  int bits = 4;  // 2 or 4
  bool is_signed = true;
};

inline std::int32_t packed_element(const std::uint8_t* data, std::int64_t index, PackedFormat format) {
  const std::int64_t bit = index * format.bits;
  const int mask = (1 << format.bits) - 1;
  const int value = (data[bit / 8] >> (bit % 8)) & mask;
  return format.is_signed && value > mask / 2 ? value - mask - 1 : value;
}

// The element's bits must be 0 before.
inline void set_packed_element(std::uint8_t* data, std::int64_t index, PackedFormat format, std::int32_t value) {
  const std::int64_t bit = index * format.bits;
  const auto bits = static_cast<std::uint32_t>(value) & ((1u << format.bits) - 1);
  data[bit / 8] = static_cast<std::uint8_t>(data[bit / 8] | (bits << (bit % 8)));
}

}  // namespace reef::numeric
