// SPDX-License-Identifier: Apache-2.0
// Arrays in NumPy's format (version 1.0: a line of text that gives type and shape, then the elements).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/type.h"

namespace reef::app {

// `type`: 8, 16, 32 or 64 bits wide integers or floats, little-endian. Refuses others.
Status write_npy(const std::string& path, ir::DataType type, const std::vector<std::int64_t>& shape,
                 std::span<const std::uint8_t> data);

}  // namespace reef::app
