// SPDX-License-Identifier: Apache-2.0
// Writes a program instruction by instruction, and keeps count of what every counter of the chip will have reached.
//
// Units of the chip are held together by counters alone: an instruction counts up when a pass of its loops is done,
// another waits until a counter has reached a number. All these numbers are totals since the last reset. The writer
// adds up what the instructions it was given will count (from their own loops and signals, for each tile by itself), so
// that thresholds are taken from total() and never written by hand.
//
// The chip's instruction memory holds a piece of 16384 rows. A longer program becomes several: each ends before a
// barrier, with which the next one begins, so that nothing is under way between them. Numbers of instructions, totals,
// registers and places in buffers go on from piece to piece (as in Google's programs).
//
// Pieces may be made shorter than that (split_from): the host sends a piece, then the data that its instructions ask
// for, then the next piece, so that all but the first can cross the link while the chip is at work. A piece is twice as
// long as the one before: the first instructions are there soon, and there are few pieces.
//
// A draft that cannot be encoded (a field too small for its value) makes the whole program fail: status() says which.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "emit/loop_nest.h"
#include "formats/darwinn/package.h"
#include "isa/counters.h"
#include "isa/instruction.h"
#include "isa/program.h"
#include "tiled/program.h"

namespace reef::emit {

using isa::Opcode;
using isa::ScalarCounter;
using isa::TileCounter;
using tiled::TiledTensor;
using tiled::TileMask;

// Sizes in words of 4 bytes, in which narrow memory and the movers count.
inline constexpr std::int32_t kWord = chip::kNarrowWordBytes;                       // bytes
inline constexpr std::int32_t kLineWords = chip::kWideLineBytes / kWord;            // of wide memory
inline constexpr std::int32_t kGroupWords = chip::kCells / kWord;                   // channels computed at once
inline constexpr std::int32_t kUnitWords = chip::kActivationFifoUnitBytes / kWord;  // of the activation buffer

// Of wide memory: units that its addresses count, in a line.
inline constexpr std::int64_t kQuarters = chip::kWideAddressUnitsPerLine;
// Of scaling memory: steps of 8 bytes between its halves, which hold 64 cells each.
inline constexpr std::int32_t kScalingHalf = 32;

// Which side of a mover waits: before it reads its source, or before it writes its destination.
enum class Gate : bool { kReading = false, kWriting = true };

struct WaitFor {
  int level = 0;               // before each pass of so many inner dimensions
  std::int64_t threshold = 0;  // total needed before pass 0
  std::int64_t increment = 1;  // more with each pass
};

// An instruction in the making. Watchers are used in the order in which waits are added.
class Draft {
 public:
  explicit Draft(isa::Opcode opcode) : instruction_(opcode) { instruction_.set_usual(); }

  Draft& tiles(TileMask mask);
  Draft& set(const isa::Field& field, std::int64_t value = 1);
  Draft& set_float(const isa::Field& field, float value);
  Draft& unscaled();  // results of a tensor operation: times 1, without limits
  // Of a tensor operation: cells that work at each step, and at the last one.
  Draft& cells(std::int64_t count, std::int64_t last);
  Draft& cells(std::int64_t count) { return cells(count, count); }
  Draft& sums_inside();  // of a tensor operation: partial sums stay in the unit, a group of them at a time
  Draft& nest(const isa::NestFields& fields, const LoopNest& nest);
  Draft& loops(const std::vector<std::int64_t>& counts);  // of a tensor operation
  Draft& wait(TileCounter counter, const WaitFor& wait, Gate gate = Gate::kReading);
  Draft& wait(ScalarCounter counter, const WaitFor& wait);
  Draft& signal(const isa::ProducerFields& producer, int level);

  const isa::Instruction& instruction() const { return instruction_; }
  const Status& status() const { return status_; }

 private:
  friend class ProgramWriter;
  void keep(const Status& status);
  void add_wait(std::uint32_t counter, const WaitFor& wait, bool on_destination);

  isa::Instruction instruction_;
  Status status_;
  std::size_t waits_ = 0;
};

// What the chip's instruction memory holds at a time, complete with start and end.
struct ProgramPiece {
  isa::Program program;
  std::vector<darwinn::FieldOffset> field_offsets;  // from the piece's first bit
  std::size_t end = 0;                              // ProgramWriter::position() behind its last instruction
};

// How programs copy host addresses from register to register. Google's compilers do it by additions in all programs
// for runtimes up to 12 and, where nothing is to be added, by copies in those for 13 and later.
enum class AddressCode : std::uint8_t { kCopies, kAdditions };

class ProgramWriter {
 public:
  // Tile instructions are numbered from `first_sequence` on.
  explicit ProgramWriter(std::uint16_t first_sequence, AddressCode address_code = AddressCode::kCopies);

  void add(Draft draft);

  // What a counter reaches when everything so far is done, since its last reset. Exact, not modulo 2^16.
  std::int64_t total(TileCounter counter, int tile) const { return tile_totals_[at(tile)][at(counter)]; }
  std::int64_t total(ScalarCounter counter) const { return scalar_totals_[at(counter)]; }

  // Scalar core.
  void load_register(int reg, std::uint32_t value);
  void copy_register(int to, int from);
  // Loads a register with half of a host address, which the driver fills in.
  void load_address(int reg, darwinn::AddressUse use);
  // Queues a host transfer: address in registers `address`, `address + 1` (in this order: low half in address + 1),
  // copied and completed through the registers from `scratch` on.
  struct Descriptor {
    int address_low = 0, address_high = 0;  // registers
    int scratch = 0;                        // first of four registers that may be changed, five with kAdditions
    std::uint32_t bytes = 0;
    int tag = 0;  // bundle::DescriptorTag
  };
  void queue_transfer(const Descriptor& descriptor);
  // to = from + offset, for addresses of 64 bits in two registers each; changes `scratch` and predicates 0 and 1.
  struct RegisterPair {
    int low = 0, high = 0;
  };
  void add_offset(RegisterPair to, RegisterPair from, int scratch, std::uint32_t offset);
  // to = from; with kAdditions likewise.
  void copy_address(RegisterPair to, RegisterPair from, int scratch);
  AddressCode address_code() const { return address_code_; }

  // All tiles finish everything they were given and say so; the scalar core waits for that and for its own movers.
  void barrier(bool last = false, std::uint32_t reset_counters = 0);
  // Tiles go on only when the units of the mask are done.
  void tile_fence(std::uint32_t drain_units, std::uint32_t reset_counters, bool notify = false, bool last = false);
  void await_tiles();
  // What is added between these two is executed `passes` times (1 at least), each pass when the one before is done on
  // all tiles. It must begin with a fence that clears all counters of tiles, so that all passes find the same, and not
  // use the host; nor the ring, unless turns on it are cleared before the loop and at its end. Loops do not nest.
  void begin_loop(std::uint32_t passes);
  void end_loop();
  // A pop that did not take a turn on the ring (input from the host) may still be sending: whoever sends on channel A
  // must be kept behind it by a barrier.
  bool pop_may_be_sending() const { return pop_may_be_sending_; }

  // Cuts the program at the first barrier behind so many rows, then behind twice as many and so on.
  void split_from(std::int64_t rows) { first_piece_rows_ = rows; }

  // Instructions so far: what was queued just now is of instruction position() - 1.
  std::size_t position() const { return program_.size(); }
  std::int64_t rows() const { return rows_; }
  // Since the last barrier: only at one can a long program be cut.
  std::int64_t rows_since_barrier() const { return rows_ - rows_at_barrier_; }

  // Adds starts and ends; the program is complete. Fails if a draft did.
  Result<std::vector<ProgramPiece>> finish() &&;

 private:
  void count(const isa::Instruction& instruction);
  void count_fences(const isa::Instruction& instruction);
  Result<std::vector<std::size_t>> cuts() const;
  Result<ProgramPiece> piece(std::size_t begin, std::size_t end);

  // An immediate that takes an address.
  struct Address {
    std::size_t position;
    darwinn::AddressUse use;
  };

  isa::Program program_;  // without starts and ends
  std::int64_t rows_ = 0;
  std::vector<std::size_t> barriers_;  // where each begins
  std::uint16_t sequence_;
  AddressCode address_code_;
  Status status_;
  std::array<std::array<std::int64_t, isa::kTileCounterCount>, chip::kTiles> tile_totals_{};
  std::array<std::int64_t, isa::kScalarCounterCount> scalar_totals_{};
  std::vector<Address> addresses_;
  bool pop_may_be_sending_ = false;
  std::int64_t rows_at_barrier_ = 0;
  std::int64_t loop_begin_ = -1;  // row; -1: there is no loop
  std::int64_t first_piece_rows_ = isa::kMaxContentRows;
};

// Masks for tile_fence.
inline constexpr std::uint32_t kAllUnits = (1u << chip::kTileUnits) - 1;
inline constexpr std::uint32_t kAllCounters = (1u << isa::kTileCounterCount) - 1;
inline constexpr std::uint32_t counter_mask(TileCounter counter) { return 1u << static_cast<unsigned>(counter); }
// Whose turn it is on the ring is counted over the whole program.
inline constexpr std::uint32_t kRingTurns =
    counter_mask(TileCounter::kRingProducerA) | counter_mask(TileCounter::kRingProducerB);
inline constexpr std::uint32_t kCountersOfTiles = kAllCounters & ~kRingTurns;
inline constexpr std::uint32_t unit_mask(isa::Unit unit) { return 1u << static_cast<unsigned>(unit); }

// Tiles of a mask with equal keys together, in the order of the first tile of each: emit(mask, key).
template <typename KeyOf, typename Emit>
void for_each_class(TileMask mask, const KeyOf& key_of, const Emit& emit) {
  using Key = decltype(key_of(0));
  std::vector<std::pair<Key, TileMask>> classes;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((mask & tiled::mask_of(tile)) == 0) continue;
    const Key key = key_of(tile);
    bool found = false;
    for (auto& [other, tiles] : classes) {
      if (!(other == key)) continue;
      tiles |= tiled::mask_of(tile);
      found = true;
      break;
    }
    if (!found) classes.emplace_back(key, tiled::mask_of(tile));
  }
  for (const auto& [key, tiles] : classes) emit(tiles, key);
}

// Tiles of a mask whose instructions come out the same share one: emit(draft), in the order of the first tile of each.
template <typename DraftOf, typename Emit>
void for_each_equal_draft(TileMask mask, const DraftOf& draft_of, const Emit& emit) {
  for_each_class(
      mask, [&](int tile) { return draft_of(tile).instruction(); },
      [&](TileMask tiles, const isa::Instruction&) {
        int first = 0;
        while ((tiles & tiled::mask_of(first)) == 0) ++first;
        Draft draft = draft_of(first);
        emit(std::move(draft.tiles(tiles)));
      });
}
// Adds them to a program, or keeps them to be added later: what waits for totals must not see those that others make.
template <typename DraftOf>
void add_each(ProgramWriter& to, TileMask mask, const DraftOf& draft_of) {
  for_each_equal_draft(mask, draft_of, [&](Draft draft) { to.add(std::move(draft)); });
}
template <typename DraftOf>
void add_each(std::vector<Draft>& to, TileMask mask, const DraftOf& draft_of) {
  for_each_equal_draft(mask, draft_of, [&](Draft draft) { to.push_back(std::move(draft)); });
}

}  // namespace reef::emit
