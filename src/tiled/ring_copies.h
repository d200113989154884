// SPDX-License-Identifier: Apache-2.0
// Words from the narrow memory of one tile to those of any others, over the ring: gathers, broadcasts, changes of
// layout.
#pragma once

#include <cstdint>
#include <vector>

#include "tiled/memory.h"

namespace reef::tiled {

struct WordStep {
  std::int32_t stride = 0;  // words of 4 bytes
  std::int32_t count = 1;
  friend bool operator==(const WordStep&, const WordStep&) = default;
};

// Words of an object of narrow memory, in the order in which they are read or written: dims[0] is innermost.
struct WordWalk {
  std::int32_t object = kNowhere;  // TiledProgram::narrow
  std::int32_t offset = 0;         // bytes from the object's start to the first word, a multiple of 4
  std::vector<WordStep> dims;      // at most kMostWalkDims that step more than once; none: a single word

  std::int64_t words() const {
    std::int64_t count = 1;
    for (const WordStep& dim : dims) count *= dim.count;
    return count;
  }
  friend bool operator==(const WordWalk&, const WordWalk&) = default;
};
inline constexpr std::size_t kMostWalkDims = 6;  // of a mover's nest

// Both walks have equally many words, any number; they may be shaped differently.
struct RingCopy {
  int from = 0;
  TileMask to = 0;  // `from` may be among them
  WordWalk source, target;
  friend bool operator==(const RingCopy&, const RingCopy&) = default;
};

// Copies one after the other. Each tile writes what it gets in the order of the list; but nothing that the list writes
// may also be read by it, on the same tile: when a copy reads is not tied to when another one writes.
struct RingCopies {
  std::vector<RingCopy> copies;
  std::int32_t output = kNowhere;  // TiledProgram::tensors: on the grid, whose halo is exchanged at the end
  std::int32_t lines = kNowhere;   // TiledProgram::wide, kRingCopyLines: two to send from, two that are free (as
                                   // Google's compiler leaves them), two to receive into
  // Google's condition for a line being free, which rests on timing where messages are shorter than a line (as in all
  // its gathers of vectors). Only to be set where its rows are compared; false: on what has really been read.
  bool google_pace = false;
};
inline constexpr std::int32_t kRingCopyLines = 6;
inline constexpr std::int32_t kRingCopyReceive = 4;  // the first line to receive into, from the object's start

}  // namespace reef::tiled
