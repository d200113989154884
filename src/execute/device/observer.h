// SPDX-License-Identifier: Apache-2.0
// Whoever wants to know what a program does while it runs: each move of each unit, told when it has happened.
//
// The chip executes the same way with and without an observer. Moves are told in the order of execution, which is one
// of the orders that waits permit; what they cost and whether another order was possible is the observer's business.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "execute/device/scalar_core.h"
#include "isa/opcode.h"
#include "isa/operation.h"

namespace reef::device {

class Chip;
struct Program;
struct Tile;
struct Running;

// Units of the scalar core that move data.
enum class HostUnitId : std::uint8_t { kInfeed, kPop, kOutfeed };
inline constexpr int kHostUnits = 3;
inline std::string_view host_unit_name(int unit) {
  return isa::unit_name(static_cast<isa::Unit>(static_cast<int>(isa::Unit::kInfeed) + unit));
}
// Their bits in a scalar fence's mask (bits 1 and 4 have no known unit).
inline constexpr std::array<std::uint32_t, kHostUnits> kDrainBits = {1u << 0, 1u << 2, 1u << 3};

enum class MoveKind : std::uint8_t {
  // Tiles. Addresses: lines of wide memory, words of narrow memory, steps of scaling memory.
  kLineSent,        // source: line. Goes to RingSend's targets
  kHeaderReceived,  // target: line
  kLineReceived,    // target: line
  kWordPacked,      // source: word, of the line that is stored next
  kLineStored,      // target: line
  kWordUnpacked,    // source: line, target: word
  kScalingLoaded,   // source: line, target: step
  kWordSent,        // source: word. Goes to the neighbour, where there is one
  kWordReceived,    // target: word; from the neighbour, or a fill
  // Scalar core. Addresses: units of the FIFO.
  kInfed,   // target: FIFO unit
  kPopped,  // source: FIFO unit; target: lines that went to the ring with this unit, 0: the line goes on
  kOutfed,  // target: loop-back word, scalar memory word, or unit of what goes to the host
};

// One step of a nest. `source` and `target` are -1 where the kind has none.
struct Move {
  MoveKind kind = MoveKind::kLineSent;
  const Tile* tile = nullptr;  // null: a unit of the scalar core
  int unit = 0;                // isa::Unit, or HostUnitId
  const Running* run = nullptr;
  std::int64_t source = -1, target = -1;
  // Positions before and after in the nest that this step belongs to: the source's for kLineSent, kWordPacked,
  // kWordSent and kPopped, else the target's. Where a step also advances the other nest, that is seen in `run`.
  std::int64_t from = 0, to = 0;
  // kWordUnpacked, kScalingLoaded: position of the line in its nest.
  std::int64_t line_position = 0;
  int line_word = 0;  // kWordUnpacked: word of the line; kScalingLoaded: step of the line
};

// Steps of a tensor instruction; positions as in their nests.
struct TensorMove {
  const Tile* tile = nullptr;
  const Running* run = nullptr;
  std::int64_t from = 0, to = 0;  // loops
  std::int64_t param_from = 0, param_to = 0;
  std::int64_t out_from = 0, out_to = 0;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begins(const Program& /*program*/, const Chip& /*chip*/) {}
  // The scalar core. `pushed`: bytes it sent to the host itself.
  virtual void executed(std::size_t /*index*/, const std::optional<HostRequest>& /*request*/, std::size_t /*pushed*/) {}
  virtual void passed_fence(std::size_t /*index*/, const isa::ScalarFence& /*fence*/) {}
  virtual void handed_out(std::size_t /*index*/, std::uint32_t /*tiles*/) {}
  virtual void handed_to_host_unit(std::size_t /*index*/, HostUnitId /*unit*/) {}
  // Tiles.
  virtual void passed_tile_fence(const Tile& /*tile*/, std::size_t /*index*/, const isa::TileFence& /*fence*/) {}
  virtual void dispatched(const Tile& /*tile*/, int /*unit*/, std::size_t /*index*/) {}
  virtual void loaded_table(const Tile& /*tile*/, const Running& /*run*/) {}
  // A unit of a tile (or of the scalar core, if `tile` is null) takes up an instruction, and is done with it.
  virtual void started(const Tile* /*tile*/, int /*unit*/, const Running& /*run*/) {}
  virtual void finished(const Tile* /*tile*/, int /*unit*/, const Running& /*run*/) {}
  virtual void moved(const Move& /*move*/) {}
  virtual void computed(const TensorMove& /*move*/) {}
  // A whole inference on a Device, before it begins and when it has ended: tensors as TFLite holds them, in the order
  // of the package's layers.
  virtual void given(const std::vector<std::span<const std::uint8_t>>& /*inputs*/) {}
  virtual void returned(const std::vector<std::vector<std::uint8_t>>& /*outputs*/) {}
  // True: the run is to end here, without an error.
  virtual bool wants_to_stop() { return false; }
};

}  // namespace reef::device
