// SPDX-License-Identifier: Apache-2.0
// Words over the mesh along paths of several tiles, and copies inside tiles that go with them.
//
// A path is a send at its first tile, a receive at its last and a relay at each tile between: it receives into two
// words in turn and sends them on. All paths of a TileMoves go the same way, by one kind of mesh instruction.
//
// Every tile executes its moves in the order in which they were added; a tile is not ordered against others but by the
// words that it waits for. Moves of several tiles that come out as equal instructions share one. A receive followed by
// a send is one instruction, whose two halves run by themselves.
//
// How it is known: order, sharing and waits are those of Google's newest compiler in the re-layout before a global pool
// (docs/hardware/google_heads.md#re-layout-from-space-to-channels; which moves share an instruction is fitted to six
// programs, and any other way that keeps the order on each tile does the same).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "emit/program_writer.h"

namespace reef::emit {

// Words of narrow memory in the order of a walk.
struct Words {
  std::int64_t first = 0;
  std::vector<Dim> dims;
  std::int64_t count() const;
};
// Dimensions of one step are left out but for the innermost; those that continue the one inside are joined with it.
std::vector<Dim> joined_dims(std::initializer_list<Dim> dims);

class TileMoves {
 public:
  // Paths of `opcode` (a mesh instruction), relayed through the words `relay` and `relay` + 1.
  TileMoves(ProgramWriter& writer, isa::Opcode opcode, std::int64_t relay);

  // Moves that belong together: one that shares an earlier instruction must not overtake others of its unit.
  void begin_unit() { ++unit_; }
  // From the first of `tiles` to the last, through all between. Both sides have equally many words.
  void add_path(std::vector<int> tiles, Words from, Words to);
  // Copies inside a tile: instructions without tiles, in this order.
  void add_copy(int tile, std::vector<Draft> drafts);
  // Writes everything.
  void write() &&;

 private:
  enum class Kind { kCopy, kSend, kRelay, kReceive, kReceiveAndSend };
  struct Move {
    Kind kind = Kind::kCopy;
    int tile = 0, unit = 0;
    std::vector<int> path;  // of a copy: the tile
    std::int64_t words = 0;
    Words from, to;
    std::optional<std::size_t> sender;  // of a receive
    std::optional<Draft> draft;
  };
  struct Shared {
    Draft draft;
    TileMask tiles;
    int place;  // row or column of tiles, along which instructions are shared; -1: a copy
    Kind kind;
    int last_unit;
  };

  void make_draft(Move& move);
  bool must_stay_alone(const Move& move, const std::vector<Shared>& written) const;
  int place_of(const Move& move) const;

  ProgramWriter& writer_;
  const isa::Opcode opcode_;
  const std::int64_t relay_;
  int unit_ = 0;
  std::vector<Move> moves_;
  std::array<std::optional<std::size_t>, chip::kTiles> last_mesh_{};  // moves_
  std::array<std::int64_t, chip::kTiles> in_{}, out_{};               // counters
  // Of what is written for each tile: the instruction last and its unit.
  std::array<std::optional<std::size_t>, chip::kTiles> last_written_{};
  std::array<int, chip::kTiles> last_unit_{};
};

}  // namespace reef::emit
