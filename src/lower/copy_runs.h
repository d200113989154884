// SPDX-License-Identifier: Apache-2.0
// A long list of single moves as few nests of loops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tiled/local_copies.h"

namespace reef::lower {

// One thing from one place to another; both in bytes.
struct Move {
  std::int32_t source = 0, target = 0;
  friend auto operator<=>(const Move&, const Move&) = default;
};

struct MoveNest {
  Move first;
  std::vector<tiled::CopyDim> dims;  // dims[0] is innermost; none: a single move
};

// Nests that make exactly the given moves. Runs of equal steps become a loop, runs of equal loops a loop around them,
// and so on: found from the inside out, each as long as it goes. Moves of a box of a tensor, in the order of its
// elements, become one nest. No nest has more than `most_dims` dimensions, no dimension more than `most_count` steps.
std::vector<MoveNest> as_nests(std::span<const Move> moves, std::size_t most_dims, std::int32_t most_count);

}  // namespace reef::lower
