// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for comparing outputs with recorded digests. Not for secrets.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace reef {

// Lower-case hexadecimal digest.
std::string sha256_hex(std::span<const std::uint8_t> data);

}  // namespace reef
