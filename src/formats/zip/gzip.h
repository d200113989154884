// SPDX-License-Identifier: Apache-2.0
// gzip and zlib streams, unpacked whole. The bytes are foreign: checksums are verified, and no more than `most` bytes
// are made of them, whatever they claim.
#pragma once

#include <cstdint>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"

namespace reef::zip {

bool is_gzip(std::span<const std::uint8_t> start);

// Several gzip members behind each other are one stream, as gzip(1) has it. What is unpacked is counted into `memory`.
Result<Bytes> unpack_gzip(const Bytes& packed, std::uint64_t most, const Budget& budget, BudgetedBytes& memory);

}  // namespace reef::zip
