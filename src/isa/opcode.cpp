// SPDX-License-Identifier: Apache-2.0
#include "isa/opcode.h"

#include <array>

#include "base/at.h"

namespace reef::isa {
namespace {

constexpr OpcodeInfo kOpcodes[] = {
    {Opcode::kMultiplyAdd, "multiply_add", 17, Unit::kTensor,
     "Sums (input - input zero point) * (parameter - parameter zero point) over a group of steps in each of up to 64 "
     "cells, then scales, clamps, rounds and stores: convolutions, fully connected layers, additions, average pools, "
     "copies."},
    {Opcode::kMaximum, "maximum", 17, Unit::kTensor,
     "Takes the largest parameter of a group of steps in each cell: max pools. The input nest is not used."},
    {Opcode::kSum, "sum", 17, Unit::kTensor,
     "Adds the parameters of a group of steps in each cell. The input nest is not used."},
    {Opcode::kResample, "resample", 17, Unit::kTensor,
     "Two-dimensional resampling, nearest or bilinear. The parameter nest is not used."},
    {Opcode::kRingSend, "ring_send", 4, Unit::kRingSend,
     "Sends lines of wide memory over the ring to tiles, to the scalar core, or both."},
    {Opcode::kRingReceiveA, "ring_receive_a", 4, Unit::kRingReceiveA,
     "Stores lines that arrive on ring channel A in wide memory, optionally header lines first."},
    {Opcode::kRingReceiveB, "ring_receive_b", 4, Unit::kRingReceiveB,
     "Stores lines that arrive on ring channel B in wide memory, optionally header lines first."},
    {Opcode::kNarrowToWide, "narrow_to_wide", 7, Unit::kNarrowToWide,
     "Packs words of narrow memory into lines of wide memory, optionally transposing blocks of bytes."},
    {Opcode::kWideToNarrow, "wide_to_narrow", 7, Unit::kWideToNarrow,
     "Unpacks lines of wide memory into words of narrow memory, or copies them to scaling memory."},
    {Opcode::kMeshSouth, "mesh_south", 6, Unit::kMeshSouth,
     "Sends words of narrow memory to the tile below, stores words that come from the tile above, or fills memory with "
     "a constant."},
    {Opcode::kMeshWest, "mesh_west", 6, Unit::kMeshWest,
     "Sends words of narrow memory to the tile on the left, stores words that come from the right, or fills memory "
     "with a constant."},
    {Opcode::kMeshNorth, "mesh_north", 6, Unit::kMeshNorth,
     "Sends words of narrow memory to the tile above, stores words that come from the tile below, or fills memory with "
     "a constant."},
    {Opcode::kMeshEast, "mesh_east", 6, Unit::kMeshEast,
     "Sends words of narrow memory to the tile on the right, stores words that come from the left, or fills memory "
     "with a constant."},
    {Opcode::kLoadActivation, "load_activation", 13, Unit::kTensor,
     "Loads the activation function table of the tensor unit: eight polynomials of degree four."},
    {Opcode::kTileFence, "tile_fence", 1, Unit::kTileDispatch,
     "Holds back the tile's later instructions until units are idle, then sets counters and notifies the scalar core."},
    {Opcode::kScalar, "scalar", 1, Unit::kScalarCore,
     "A bundle of the scalar core: arithmetic, a load, a store or host queue access, and a math function at once."},
    {Opcode::kHalt, "halt", 1, Unit::kScalarCore, "Ends the program."},
    {Opcode::kBranch, "branch", 1, Unit::kScalarCore, "Continues at another row, always or if a predicate holds."},
    {Opcode::kRepeat, "repeat", 1, Unit::kScalarCore, "Executes the following rows several times."},
    {Opcode::kScalarFence, "scalar_fence", 2, Unit::kScalarCore,
     "Holds back the scalar core until tiles have notified it, counters have arrived and units are idle, then sets "
     "counters."},
    {Opcode::kInfeed, "infeed", 2, Unit::kInfeed, "Takes parameters or activations from the host into a buffer."},
    {Opcode::kPop, "pop", 4, Unit::kPop, "Sends data from a buffer of the scalar core to tiles, over ring channel A."},
    {Opcode::kOutfeed, "outfeed", 2, Unit::kOutfeed,
     "Takes lines that ring_send sent to the scalar core and passes them to the host or into the loop-back buffer."},
    {Opcode::kStart, "start", 1, Unit::kScalarCore, "First row of every program: states its length."},
    {Opcode::kEnd, "end", 1, Unit::kScalarCore, "Last row of every program."},
};

constexpr auto opcode_make_index() {
  std::array<std::int8_t, 64> index{};
  for (auto& slot : index) slot = -1;
  for (std::size_t i = 0; i < std::size(kOpcodes); ++i) {
    index[at(kOpcodes[i].opcode)] = static_cast<std::int8_t>(i);
  }
  return index;
}
constexpr auto kOpcodeIndex = opcode_make_index();

}  // namespace

std::span<const OpcodeInfo> all_opcodes() { return kOpcodes; }

const OpcodeInfo& info(Opcode opcode) {
  const std::int8_t slot = kOpcodeIndex[static_cast<std::size_t>(opcode) & 63];
  return kOpcodes[slot < 0 ? 0 : slot];
}

std::optional<Opcode> opcode_from_code(unsigned code) {
  if (code >= kOpcodeIndex.size() || kOpcodeIndex[code] < 0) return std::nullopt;
  return static_cast<Opcode>(code);
}

std::optional<Opcode> opcode_from_mnemonic(std::string_view mnemonic) {
  for (const OpcodeInfo& row : kOpcodes) {
    if (row.mnemonic == mnemonic) return row.opcode;
  }
  return std::nullopt;
}

std::string_view unit_name(Unit unit) {
  constexpr std::string_view kNames[] = {
      "tensor",    "wide_to_narrow", "ring_send", "ring_receive_a", "ring_receive_b", "narrow_to_wide", "mesh_south",
      "mesh_west", "mesh_north",     "mesh_east", "tile dispatch",  "scalar core",    "infeed",         "pop",
      "outfeed",
  };
  return kNames[at(unit)];
}

}  // namespace reef::isa
