// SPDX-License-Identifier: Apache-2.0
// Numbers of the element types that imported models have, to and from bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "ir/model.h"

namespace reef::import {

// One number of any number type, saturated to its range; empty for other types.
std::vector<std::uint8_t> number_bytes(ir::DataType type, double value);

// The bytes of whole numbers as int32 (saturated) or int64.
std::vector<std::uint8_t> integer_bytes(std::span<const std::int64_t> values, ir::DataType type);

// All elements; nullopt for types that are no numbers, and where a float is asked for as an integer that it is not.
std::optional<std::vector<std::int64_t>> as_integers(ir::DataType type, const Bytes& data);
std::optional<std::vector<float>> as_floats(ir::DataType type, const Bytes& data);

}  // namespace reef::import
