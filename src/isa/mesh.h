// SPDX-License-Identifier: Apache-2.0
// Opcodes 15 to 18: words of narrow memory to and from the neighbouring tiles.
//
// 15 sends south and receives from the north, 16 west / from the east, 17 north / from the south, 18 east / from the
// west. An instruction may only send (`out` unused), only receive (`in` unused) or do both; with `fill` it stores a
// constant instead of what arrives.
#pragma once

#include "isa/layout.h"
#include "isa/opcode.h"

namespace reef::isa::mesh {

using layout::field;
using layout::flag;

enum NestIndex : std::uint8_t { kInNest, kOutNest };

inline constexpr NestFields kIn = layout::nest({"in", AddressUnit::kNarrowWord, 62, 4, 16, 17, 16, 2});
inline constexpr NestFields kOut = layout::nest({"out", AddressUnit::kNarrowWord, 267, 4, 16, 17, 16, 2});
inline constexpr std::array kNests = {kIn, kOut};

// The counters of an opcode. MESH_x_OUT counts what was sent towards x, MESH_x_IN what arrived from x.
constexpr TileCounter out_counter(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMeshSouth:
      return TileCounter::kMeshSouthOut;
    case Opcode::kMeshWest:
      return TileCounter::kMeshWestOut;
    case Opcode::kMeshNorth:
      return TileCounter::kMeshNorthOut;
    default:
      return TileCounter::kMeshEastOut;
  }
}
constexpr TileCounter in_counter(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMeshSouth:
      return TileCounter::kMeshNorthIn;
    case Opcode::kMeshWest:
      return TileCounter::kMeshEastIn;
    case Opcode::kMeshNorth:
      return TileCounter::kMeshSouthIn;
    default:
      return TileCounter::kMeshWestIn;
  }
}

constexpr std::array<ProducerFields, 2> producers(Opcode opcode) {
  return {
      layout::producer(
          {"signal_sent", 473, 3, false, static_cast<std::uint8_t>(out_counter(opcode)), kInNest, Evidence::kObserved}),
      layout::producer({"signal_received", 477, 3, false, static_cast<std::uint8_t>(in_counter(opcode)), kOutNest})};
}
inline constexpr auto kWatchers = layout::watchers<6>({481, 5, 2, true, false, {kInNest, kOutNest}});

inline constexpr Field kFill = flag("fill", 727, "stores fill_value instead of words that arrive", Evidence::kExecuted);
inline constexpr Field kFillValue =
    field("fill_value", 728, 32, Kind::kRaw, "word", "the constant", Evidence::kExecuted);

}  // namespace reef::isa::mesh
