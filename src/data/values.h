// SPDX-License-Identifier: Apache-2.0
// Numbers into a tensor's type, and a NumPy array's numbers out of theirs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "formats/numpy/npy.h"

namespace reef::data {

// Floats are rounded to the type; 8- and 16-bit tensors with a scale store round(value / scale) + zero point,
// saturating; other integers must be whole and in range, or the error says which value is not.
Status store_reals(std::span<const double> values, const InputSpec& input, std::span<std::byte> target);

// Elements [first, first + count) of an array. 64-bit integers beyond 2^53 lose their last digits.
Result<std::vector<double>> array_values(const numpy::Array& array, std::int64_t first, std::int64_t count);

}  // namespace reef::data
