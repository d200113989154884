// SPDX-License-Identifier: Apache-2.0
// Arrays of bytes from NumPy's .npz files (zip archives of .npy files), as far as tests need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace reef::testing {

struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

// Of unsigned bytes, in C order.
Result<ByteArray> load_bytes_from_npz(const std::string& path, const std::string& name);

}  // namespace reef::testing
