// SPDX-License-Identifier: Apache-2.0
// Constants per channel of element-wise operators: rows of 64 bytes, each with the 32-bit words of 4 channels and
// zeros.
//
// A product with a constant vector (MUL; the slope of PRELU) becomes one float32 multiplier per channel, an addition of
// one (ADD, SUB) one int32 bias per channel, in units of the input's scale. Found in EXECUTION_ONLY blobs only: they
// are sent anew for every inference.
//
//   row 0   |c0 c1 c2 c3|0 0 0 0 0 0 0 0 0 0 0 0|      one word each
//   row 1   |c4 c5 c6 c7|0 ...
//
// How it is known: 320 products and 320 additions in three packages of the collection, and 19 PRELU and 25 MUL layers
// of others, equal the bytes. SUB was seen once (as negated bias). Channels that do not fill a row: inferred to be
// zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::darwinn {

// One chunk; `words` is one value per channel, float bits or int32.
std::vector<std::uint8_t> pack_channel_lines(std::span<const std::uint32_t> words);

// The words of a chunk of `channels` channels. Fails unless packing them gives `chunk` again.
Result<std::vector<std::uint32_t>> unpack_channel_lines(std::span<const std::uint8_t> chunk, std::size_t channels);

// MUL, PRELU, ADD or SUB of a computed and a constant operand, both 8 bits: the operator's words. The model must be
// verified. Other operators, and constants that do not vary along the channels only, are refused.
Result<std::vector<std::uint32_t>> channel_words_of(const ir::Model& model, const ir::Subgraph& graph,
                                                    const ir::Operator& op);

}  // namespace reef::darwinn
