// SPDX-License-Identifier: Apache-2.0
// Works out the copies of a movement (rearrange.h): which words come from other tiles, and how each tile puts its own
// together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lower/copy_runs.h"
#include "lower/placement.h"
#include "lower/rearrange.h"
#include "lower/rearrangement_cache.h"

namespace reef::lower {

// A word of an object of narrow memory (by its role), by its first byte.
struct WordPlace {
  std::int32_t object = tiled::kNowhere, byte = 0;
  friend auto operator<=>(const WordPlace&, const WordPlace&) = default;
};

// Bytes of a word that lie in equal steps in one object.
struct Piece {
  std::int32_t object = tiled::kNowhere, byte = 0;
  std::int32_t first = 0, count = 0, stride = 1;  // which bytes of the word
};

// Everything but the places: pieces with equal forms are copied by one instruction.
struct PieceForm {
  std::int32_t object = tiled::kNowhere;
  bool single_bytes = false;
  std::int32_t first = 0, count = 0, stride = 0;
  friend auto operator<=>(const PieceForm&, const PieceForm&) = default;
};

inline constexpr auto kPlanTiles = static_cast<std::size_t>(chip::kTiles);

class RearrangementPlan {
 public:
  // For sketches only some tiles are looked at, which stand for all: sizes come out nearly the same.
  RearrangementPlan(const Builder& builder, const Rearrangement& what, const ObjectRoles& roles)
      : what_(what),
        output_(builder.tensor(what.output)),
        output_role_(roles.role_of(output_.object)),
        buffer_(roles.buffer()),
        scratch_(roles.scratch()),
        to_(output_),
        planned_(builder.is_sketch() ? kSketchTiles : tiled::kAllTiles) {
    for (const Read& read : what.operands) {
      from_.emplace_back(builder.tensor(read.tensor));
      from_roles_.push_back(roles.role_of(from_.back().object()));
    }
  }

  // Fails after planning where the map from results to sources leaves an operand: shapes and map contradict each other.
  Status status() const {
    return reads_outside_ ? internal_error("elements outside of an operand would be moved") : ok_status();
  }

  // Plans what comes from other tiles, then everything else.
  PlannedMovement plan();

 private:
  struct Byte {
    enum class Kind : std::uint8_t { kUnused, kZero, kHere, kAway } kind = Kind::kUnused;
    int owner = 0;
    std::int32_t object = tiled::kNowhere, byte = 0;  // on this tile, or on the owner
  };
  using Word = std::array<Byte, chip::kNarrowWordBytes>;

  Word word_of(int tile, const Placement::OwnWord& own) const;
  // The one whole word that a word is, on this or on another tile.
  static std::optional<WordPlace> whole_word(const Word& word);

  void plan_transfers();
  void plan_copies();
  tiled::LocalCopies take_copies();

  void collect(int tile);
  void plan_direct(int from);
  // By tiles and object: words, by their first bytes, ascending.
  using Groups = std::map<std::pair<tiled::TileMask, std::int32_t>, std::vector<std::int32_t>>;
  static Groups best_groups(const std::map<WordPlace, tiled::TileMask>& wanted);
  static std::vector<Move> moves_to_buffer(const std::vector<std::int32_t>& bytes, std::int32_t base);
  void plan_buffer(int from);
  void send(int from, tiled::TileMask to, std::int32_t source, std::int32_t target, const std::vector<Move>& moves);

  std::vector<Piece> pieces_of(int tile, const Word& word) const;
  static PieceForm form_of(const Piece& piece);
  void plan_tile(int tile);
  void add_copies(int tile, const PieceForm& form, std::int32_t target, const std::vector<Move>& moves,
                  std::map<tiled::LocalCopy, tiled::TileMask>& round);

  static constexpr tiled::TileMask kSketchTiles = 0x8421;  // of different rows and columns

  mutable bool reads_outside_ = false;
  const Rearrangement& what_;
  const tiled::TiledTensor& output_;
  // Objects by their roles: the buffer takes words that do not go directly to their places, the scratch object words of
  // several pieces.
  const std::int32_t output_role_, buffer_, scratch_;
  Placement to_;
  const tiled::TileMask planned_;
  std::vector<Placement> from_;
  std::vector<std::int32_t> from_roles_;

  struct Transfer {
    Move move;
    std::int32_t object;
  };
  // By owner: words that go directly to their places, and those that are wanted in the buffer, by tile.
  std::array<std::array<std::vector<Transfer>, kPlanTiles>, kPlanTiles> direct_;
  std::array<std::map<WordPlace, tiled::TileMask>, kPlanTiles> wanted_;
  // By tile: where it has words of others (owner, object, byte) in its buffer.
  std::array<std::map<std::tuple<int, std::int32_t, std::int32_t>, std::int32_t>, kPlanTiles> in_buffer_;
  std::array<std::set<int>, kPlanTiles> not_direct_;  // by owner
  std::array<std::int32_t, kPlanTiles> filled_{};     // bytes of the buffer in use
  std::int64_t buffer_bytes_ = 0, scratch_bytes_ = 0;
  std::vector<tiled::RingCopy> transfers_;

  std::map<tiled::LocalFill, tiled::TileMask> fills_;
  std::map<tiled::LocalCopy, tiled::TileMask> first_round_, second_round_;
};

}  // namespace reef::lower
