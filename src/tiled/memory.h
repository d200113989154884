// SPDX-License-Identifier: Apache-2.0
// Memory of the tiles as things to be placed: lowering says how large they are and when they exist, scheduling where
// they are.
//
// Every tile has the same map: an object takes the same addresses in all of them, used or not.
#pragma once

#include <cstdint>
#include <vector>

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
  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

// A lifetime without the steps (in order, inside of it) during which something is elsewhere.
inline std::vector<Lifetime> presences(const Lifetime& life, const std::vector<Lifetime>& away) {
  std::vector<Lifetime> result;
  Lifetime present = life;
  for (const Lifetime& gap : away) {
    result.push_back({present.first, gap.first - 1});
    present.first = gap.last + 1;
  }
  result.push_back(present);
  return result;
}

// Bytes of narrow memory: an activation, several that share a place, or scratch of one step.
struct NarrowObject {
  std::int64_t bytes = 0;
  // Placed after all others, at the lowest address that is free: small buffers that only one step needs.
  bool fills_gaps = false;
  std::int64_t gap_margin = 0;  // a gap below other things must be larger by so much (as in Google's programs)
  Lifetime life = {};
  std::int32_t address = kNowhere;  // schedule's; a multiple of 4
  // Schedule's: steps during which the content is in wide memory (Spill), in order. It comes back to the same address.
  std::vector<Lifetime> away = {};

  bool exists_with(const NarrowObject& other) const {
    if (!life.overlaps(other.life)) return false;
    if (away.empty() && other.away.empty()) return true;
    for (const Lifetime& mine : presences(life, away)) {
      for (const Lifetime& theirs : presences(other.life, other.away)) {
        if (mine.overlaps(theirs)) return true;
      }
    }
    return false;
  }
};

// Lines of wide memory (256 bytes each) used as scratch. Parameters that stay are not among them (parameters.h).
struct WideObject {
  std::int64_t lines = 0;
  Lifetime life = {};
  std::int32_t line = kNowhere;  // schedule's: the first
};

}  // namespace reef::tiled
