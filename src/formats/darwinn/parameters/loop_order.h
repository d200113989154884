// SPDX-License-Identifier: Apache-2.0
// In which order Google's compiler stores the weights of a convolution.
//
// A tile computes its output pixels either one after the other over the whole kernel (sums stay in accumulators;
// weights stored kernel first), or block by block of input channels over all its pixels (partial sums in memory;
// weights stored in the same blocks). The compiler chooses by what has to be moved:
//   N      weight lines of a layer = kernel positions * ceil(input channels / 4)
//   block  kernel positions * words of input channels; the words are the largest divisor of ceil(input channels / 4)
//   for
//          which a block has at most 13 lines, at least 1
//   pixels output pixels of the busiest tile
//   partial sums if pixels + 2 * block < 2 * N; when equal, if N >= 32.
// How it is known: decoded from the programs of more than 25 networks, where it holds for every convolution; the limit
// of 13 lines is only bounded (12 or 13) and the tie rule rests on two layers. tests/zoo_parameters_test.cpp compares
// it with every kernel larger than 1x1 in the model collection.
#pragma once

#include <cstdint>

#include "formats/darwinn/parameters/layer_parameters.h"

namespace reef::darwinn {

// Words of input channels per block when partial sums go through memory.
std::int32_t partial_sum_block_words(const LayerShape& shape);

// `pixels_per_tile`: output pixels of the tile that has most of them. The shape must be valid.
LoopOrder compiler_loop_order(const LayerShape& shape, std::int64_t pixels_per_tile);

// Pixels per tile of a map that is spread over the chip's 4x4 tiles in one piece.
std::int64_t pixels_per_tile(std::int32_t output_height, std::int32_t output_width);

}  // namespace reef::darwinn
