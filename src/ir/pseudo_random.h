// SPDX-License-Identifier: Apache-2.0
// The sequence that stands in for data where none is given: reproducible anywhere, and what recorded vectors were made
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/type.h"

namespace reef::ir {

// s = s * 1664525 + 1013904223 (mod 2^32) per element, starting from `seed`: 8-bit types take s >> 24, float32
// (s >> 8) / 2^24, int32 s >> 24; tensors of other types are filled byte by byte with s >> 24. Little-endian.
void fill_pseudo_random(DataType type, std::uint32_t seed, std::span<std::byte> target);

}  // namespace reef::ir
