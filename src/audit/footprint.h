// SPDX-License-Identifier: Apache-2.0
// Which places of a memory a block of steps touches, without looking at every step.
//
// A block is a rectangular part of a loop nest: some inner dimensions as a whole, and some indices in a row of the
// next one. Its steps touch the sums of one multiple of each dimension's stride; where these overlap or follow each
// other they make intervals. A 3 x 3 window that slides over a row of pixels touches three intervals, however many
// steps it makes.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/nest_shape.h"

namespace reef::audit {

struct Interval {
  std::int64_t first = 0, count = 0;  // places
  bool operator==(const Interval&) const = default;
};

// The largest block of at most `steps` steps that begins where the cursor stands. Precondition: the nest has no clip.
std::int64_t block_at(const isa::NestShape& nest, const isa::NestCursor& cursor, std::int64_t steps);

// Steps that follow before the nest's double buffer changes sides; all that are left where it has none.
std::int64_t steps_on_this_side(const isa::NestShape& nest, const isa::NestCursor& cursor);

struct Footprint {
  std::vector<Interval> intervals;  // together exactly the places that the steps touch; they may overlap
  std::int64_t accesses = 0;        // places that each of the steps touches, added up
};

// Computes the footprint of `steps` steps of `width` units each that begin where the cursor stands. `units_per_place`
// is a power of two. False if it has more than `most` intervals, or addresses that no memory has.
bool footprint_of(const isa::NestShape& nest, const isa::NestCursor& cursor, std::int64_t steps, std::int64_t width,
                  std::int64_t units_per_place, std::size_t most, Footprint& footprint);

}  // namespace reef::audit
