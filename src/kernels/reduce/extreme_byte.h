// SPDX-License-Identifier: Apache-2.0
// Where in a row of bytes the largest or smallest is.
#pragma once

#include <cstdint>

namespace reef::kernels {

// Index of the first of the largest (or smallest) of `count` >= 1 numbers, which are int8_t or uint8_t.
std::int64_t first_extreme_byte(const std::uint8_t* row, std::int64_t count, bool is_signed, bool want_max);

// The same for `rows` rows, one after another. Index: int32_t or int64_t.
template <typename Index>
void first_extreme_bytes(const std::uint8_t* row, std::int64_t rows, std::int64_t count, bool is_signed, bool want_max,
                         Index* at);

}  // namespace reef::kernels
