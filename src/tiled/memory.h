// SPDX-License-Identifier: Apache-2.0
// Memory of the tiles as things to be placed: lowering says how large they are and when they exist, scheduling where
// they are.
//
// Every tile has the same map: an object takes the same addresses in all of them, used or not.
#pragma once

#include <cstdint>

#include "chip/machine.h"

namespace reef::tiled {

inline constexpr std::int32_t kNowhere = -1;

// Tile t is bit t; row t / 4, column t % 4.
using TileMask = std::uint16_t;
inline constexpr TileMask kAllTiles = 0xffff;
constexpr TileMask mask_of(int tile) { return static_cast<TileMask>(1u << tile); }

// Steps of the program (TiledProgram::steps) during which an object exists, both inclusive. An object is never shorter
// than one step: what a step reads, writes and needs besides exists together.
struct Lifetime {
  std::int32_t first = kNowhere, last = kNowhere;

  void include(std::int32_t step) {
    if (first == kNowhere || step < first) first = step;
    if (step > last) last = step;
  }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

// Bytes of narrow memory: an activation, several that share a place, or scratch of one step.
struct NarrowObject {
  std::int64_t bytes = 0;
  // Placed after all others, at the lowest address that is free: small buffers that only one step needs.
  bool fills_gaps = false;
  std::int64_t gap_margin = 0;  // a gap below other things must be larger by so much (as in Google's programs)
  Lifetime life = {};
  std::int32_t address = kNowhere;  // schedule's; a multiple of 4
};

// Lines of wide memory (256 bytes each) used as scratch. Parameters that stay are not among them (parameters.h).
struct WideObject {
  std::int64_t lines = 0;
  Lifetime life = {};
  std::int32_t line = kNowhere;  // schedule's: the first
};

}  // namespace reef::tiled
