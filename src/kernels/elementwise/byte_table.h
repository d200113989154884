// SPDX-License-Identifier: Apache-2.0
// Functions of 8-bit numbers by table.
#pragma once

#include <array>
#include <cstdint>

namespace reef::kernels {

using ByteTable = std::array<std::uint8_t, 256>;

// out[i] = table[in[i]]. `in` and `out` may be the same.
void look_up_bytes(const std::uint8_t* in, std::int64_t count, const ByteTable& table, std::uint8_t* out);

}  // namespace reef::kernels
