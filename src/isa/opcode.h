// SPDX-License-Identifier: Apache-2.0
// The opcodes of the Edge TPU, and the unit that executes each.
//
// Evidence: with these row counts all 219,344 rows of 112 compiled programs decode to the last row, and the 16-bit
// sequence numbers that every tile instruction carries increase by one without a break. Names are ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "chip/machine.h"

namespace reef::isa {

enum class Opcode : std::uint8_t {
  kMultiplyAdd = 0x01,
  kMaximum = 0x02,
  kSum = 0x03,
  kResample = 0x05,
  kRingSend = 0x10,
  kRingReceiveA = 0x11,
  kRingReceiveB = 0x12,
  kNarrowToWide = 0x13,
  kWideToNarrow = 0x14,
  kMeshSouth = 0x15,
  kMeshWest = 0x16,
  kMeshNorth = 0x17,
  kMeshEast = 0x18,
  kLoadActivation = 0x19,
  kTileFence = 0x1a,
  kScalar = 0x20,
  kHalt = 0x21,
  kBranch = 0x22,
  kRepeat = 0x23,
  kScalarFence = 0x24,
  kInfeed = 0x25,
  kPop = 0x26,
  kOutfeed = 0x27,
  kStart = 0x3e,
  kEnd = 0x3f,
};

// Who executes an instruction. The scalar core reads the program row by row. Instructions of the tile units are
// broadcast to the tiles of their mask; each tile hands them, in order, to ten queues that run concurrently.
enum class Unit : std::uint8_t {
  // Queues of a tile, in the order of the unit mask of a tile fence.
  kTensor,
  kWideToNarrow,
  kRingSend,
  kRingReceiveA,
  kRingReceiveB,
  kNarrowToWide,
  kMeshSouth,
  kMeshWest,
  kMeshNorth,
  kMeshEast,
  // The tile's dispatcher itself: stalls that tile only.
  kTileDispatch,
  // The scalar core and the queues beside it.
  kScalarCore,
  kInfeed,
  kPop,
  kOutfeed,
};

inline constexpr int kRowBytes = chip::kInstructionRowBytes;
inline constexpr int kRowBits = 8 * kRowBytes;
inline constexpr int kMaxRows = 17;
// The most content rows of one program: its start instruction states the content's length in 21 bits.
inline constexpr int kMaxContentRows = chip::kInstructionChunkRows;

struct OpcodeInfo {
  Opcode opcode;
  std::string_view mnemonic;
  std::uint8_t rows;
  Unit unit;
  std::string_view summary;
};

std::span<const OpcodeInfo> all_opcodes();  // in numeric order
const OpcodeInfo& info(Opcode opcode);
// Nothing where `code` is not an opcode of the chip.
std::optional<Opcode> opcode_from_code(unsigned code);
std::optional<Opcode> opcode_from_mnemonic(std::string_view mnemonic);

std::string_view unit_name(Unit unit);

constexpr bool is_tile_instruction(Opcode opcode) { return static_cast<unsigned>(opcode) < 0x20; }
constexpr bool is_tensor_op(Opcode opcode) { return static_cast<unsigned>(opcode) <= 0x05; }
constexpr bool is_mesh(Opcode opcode) { return opcode >= Opcode::kMeshSouth && opcode <= Opcode::kMeshEast; }

}  // namespace reef::isa
