// SPDX-License-Identifier: Apache-2.0
#include "lower/rearrange.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "lower/copy_runs.h"
#include "lower/placement.h"
#include "lower/ring_copies.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {
namespace {

using tiled::CopyDim;
using tiled::LocalCopies;
using tiled::LocalCopy;
using tiled::RingCopies;
using tiled::RingCopy;
using tiled::TileMask;

constexpr std::int32_t kWord = chip::kNarrowWordBytes;
constexpr auto kTiles = static_cast<std::size_t>(chip::kTiles);
// Copies over the ring from one tile to another that go directly where the words belong; if it takes more, the words go
// to a buffer first.
constexpr std::size_t kMostDirectCopies = 8;
// Copies of words from one tile to the same others; if it takes more, everything between them is sent along.
constexpr std::size_t kMostBufferCopies = 6;
// Different sets of tiles that one tile's words go to; if there are more, all words go to all of these.
constexpr std::size_t kMostSets = 12;

// A word of an object of narrow memory, by its first byte.
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

class Planner {
 public:
  Planner(const Builder& builder, const Rearrangement& what)
      : what_(what), output_(builder.tensor(what.output)), to_(output_) {
    for (const Read& read : what.operands) from_.emplace_back(builder.tensor(read.tensor));
  }

  // What comes from other tiles. `buffer`: the object for words that do not go directly to their places.
  void plan_transfers(std::int32_t buffer);
  std::int64_t buffer_bytes() const { return buffer_bytes_; }
  RingCopies take_transfers() { return {std::move(transfers_)}; }

  // Everything else. `scratch`: the object for words of several pieces.
  void plan_copies(std::int32_t scratch);
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  LocalCopies take_copies();

 private:
  struct Byte {
    enum class Kind : std::uint8_t { kUnused, kZero, kHere, kAway } kind = Kind::kUnused;
    int owner = 0;
    std::int32_t object = tiled::kNowhere, byte = 0;  // on this tile, or on the owner
  };
  using Word = std::array<Byte, kWord>;

  Word word_of(int tile, const Placement::OwnWord& own) const;
  // The one whole word that a word is, on this or on another tile.
  static std::optional<WordPlace> whole_word(const Word& word);

  void collect(int tile);
  void plan_direct(int from);
  void plan_buffer(int from, std::int32_t buffer);
  void send(int from, TileMask to, std::int32_t source, std::int32_t target, const std::vector<Move>& moves);

  std::vector<Piece> pieces_of(int from_tile, const Word& word) const;
  static PieceForm form_of(const Piece& piece);
  void plan_tile(int tile, std::int32_t scratch);
  void add_copies(int tile, const PieceForm& form, std::int32_t target, const std::vector<Move>& moves,
                  std::map<LocalCopy, TileMask>& round);

  const Rearrangement& what_;
  const tiled::TiledTensor& output_;
  Placement to_;
  std::vector<Placement> from_;

  struct Transfer {
    Move move;
    std::int32_t object;
  };
  // By owner: words that go directly to their places, and those that are wanted in the buffer, by tile.
  std::array<std::array<std::vector<Transfer>, kTiles>, kTiles> direct_;
  std::array<std::map<WordPlace, TileMask>, kTiles> wanted_;
  std::array<std::map<WordPlace, std::int32_t>, kTiles> in_buffer_;  // by owner: byte of the buffer
  std::array<std::set<int>, kTiles> not_direct_;                     // by owner
  std::array<std::int32_t, kTiles> filled_{};                        // bytes of the buffer in use
  std::int32_t buffer_ = tiled::kNowhere;
  std::int64_t buffer_bytes_ = 0, scratch_bytes_ = 0;
  std::vector<RingCopy> transfers_;

  std::map<tiled::LocalFill, TileMask> fills_;
  std::map<LocalCopy, TileMask> first_round_, second_round_;
};

Planner::Word Planner::word_of(int tile, const Placement::OwnWord& own) const {
  Word word;
  for (std::int32_t k = 0; k < own.elements; ++k) {
    Byte& byte = word[static_cast<std::size_t>(k)];
    const ElementSource source = what_.source_of(own.first + k);
    byte.kind = Byte::Kind::kZero;
    if (source.operand == ElementSource::kZeroPoint) continue;
    const Placement& from = from_[static_cast<std::size_t>(source.operand)];
    byte.object = from.object();
    byte.byte = from.byte_on(tile, source.element);
    byte.kind = Byte::Kind::kHere;
    byte.owner = tile;
    if (byte.byte != Placement::kNotHere) continue;
    byte.kind = Byte::Kind::kAway;
    byte.owner = from.owner(source.element);
    byte.byte = from.byte_on(byte.owner, source.element);
  }
  return word;
}

std::optional<WordPlace> Planner::whole_word(const Word& word) {
  const Byte& first = word[0];
  if (first.kind != Byte::Kind::kHere && first.kind != Byte::Kind::kAway) return std::nullopt;
  if (first.byte % kWord != 0) return std::nullopt;
  for (std::int32_t k = 1; k < kWord; ++k) {
    const Byte& byte = word[static_cast<std::size_t>(k)];
    if (byte.kind == Byte::Kind::kUnused) continue;
    if (byte.kind != first.kind || byte.owner != first.owner || byte.object != first.object ||
        byte.byte != first.byte + k) {
      return std::nullopt;
    }
  }
  return WordPlace{first.object, first.byte};
}

// ---- From other tiles ----

void Planner::collect(int tile) {
  for (const Placement::OwnWord& own : to_.own_words(tile)) {
    const Word word = word_of(tile, own);
    if (const auto whole = whole_word(word); whole && word[0].kind == Byte::Kind::kAway) {
      direct_[static_cast<std::size_t>(word[0].owner)][static_cast<std::size_t>(tile)].push_back(
          {{whole->byte, own.at}, whole->object});
      continue;
    }
    for (const Byte& byte : word) {
      if (byte.kind != Byte::Kind::kAway) continue;
      wanted_[static_cast<std::size_t>(byte.owner)][{byte.object, byte.byte / kWord * kWord}] |= tiled::mask_of(tile);
    }
  }
}

void Planner::send(int from, TileMask to, std::int32_t source, std::int32_t target, const std::vector<Move>& moves) {
  for (const MoveNest& nest : as_nests(moves, tiled::kMostWalkDims, 1 << 15)) {
    RingCopy copy{from, to, {source, nest.first.source, {}}, {target, nest.first.target, {}}};
    for (const CopyDim& dim : nest.dims) {
      copy.source.dims.push_back({dim.source_stride / kWord, dim.count});
      copy.target.dims.push_back({dim.target_stride / kWord, dim.count});
    }
    transfers_.push_back(std::move(copy));
  }
}

// Words of one tile that go directly to their places. Those that go to the same place on several tiles go together.
void Planner::plan_direct(int from) {
  auto& lists = direct_[static_cast<std::size_t>(from)];
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, TileMask> targets;  // object, target, source
  for (std::size_t t = 0; t < kTiles; ++t) {
    std::map<std::int32_t, std::vector<Move>> moves;  // by object
    for (const Transfer& transfer : lists[t]) moves[transfer.object].push_back(transfer.move);
    std::size_t copies = 0;
    for (const auto& [object, list] : moves) copies += as_nests(list, tiled::kMostWalkDims, 1 << 15).size();
    const TileMask mask = tiled::mask_of(static_cast<int>(t));
    if (copies > kMostDirectCopies) {
      not_direct_[static_cast<std::size_t>(from)].insert(static_cast<int>(t));
      for (const Transfer& transfer : lists[t]) {
        wanted_[static_cast<std::size_t>(from)][{transfer.object, transfer.move.source}] |= mask;
      }
    } else {
      for (const Transfer& transfer : lists[t]) {
        targets[{transfer.object, transfer.move.target, transfer.move.source}] |= mask;
      }
    }
    lists[t].clear();
  }
  std::map<std::pair<TileMask, std::int32_t>, std::vector<Move>> groups;
  for (const auto& [place, mask] : targets) {
    groups[{mask, std::get<0>(place)}].push_back({std::get<2>(place), std::get<1>(place)});
  }
  for (const auto& [group, moves] : groups) send(from, group.first, group.second, output_.object, moves);
}

// Words of one tile that others want in their buffers, at the same place in all of these.
void Planner::plan_buffer(int from, std::int32_t buffer) {
  const auto& wanted = wanted_[static_cast<std::size_t>(from)];
  std::map<std::pair<TileMask, std::int32_t>, std::vector<std::int32_t>> groups;
  TileMask all = 0;
  for (const auto& [place, mask] : wanted) {
    groups[{mask, place.object}].push_back(place.byte);
    all |= mask;
  }
  if (groups.size() > kMostSets) {
    groups.clear();
    for (const auto& [place, mask] : wanted) groups[{all, place.object}].push_back(place.byte);
  }
  for (const auto& [group, bytes] : groups) {
    const auto& [mask, object] = group;
    std::int32_t base = 0;
    for (std::size_t t = 0; t < kTiles; ++t) {
      if ((mask >> t & 1) != 0) base = std::max(base, filled_[t]);
    }
    std::vector<Move> moves;
    for (const std::int32_t byte : bytes) {
      moves.push_back({byte, base + kWord * static_cast<std::int32_t>(moves.size())});
    }
    if (as_nests(moves, tiled::kMostWalkDims, 1 << 15).size() > kMostBufferCopies) {
      moves.clear();
      for (std::int32_t byte = bytes.front(); byte <= bytes.back(); byte += kWord) {
        moves.push_back({byte, base + byte - bytes.front()});
      }
    }
    for (const Move& move : moves) in_buffer_[static_cast<std::size_t>(from)][{object, move.source}] = move.target;
    send(from, mask, object, buffer, moves);
    const std::int32_t end = moves.back().target + kWord;
    for (std::size_t t = 0; t < kTiles; ++t) {
      if ((mask >> t & 1) != 0) filled_[t] = end;
    }
    buffer_bytes_ = std::max<std::int64_t>(buffer_bytes_, end);
  }
}

void Planner::plan_transfers(std::int32_t buffer) {
  buffer_ = buffer;
  for (int t = 0; t < chip::kTiles; ++t) collect(t);
  for (int t = 0; t < chip::kTiles; ++t) {
    plan_direct(t);
    plan_buffer(t, buffer);
  }
}

// ---- Within a tile ----

// The word's bytes as they lie now, in as few pieces as possible; none: all of it is the zero point.
std::vector<Piece> Planner::pieces_of(int from_tile, const Word& word) const {
  (void)from_tile;
  std::vector<Piece> pieces;
  for (std::int32_t k = 0; k < kWord; ++k) {
    const Byte& byte = word[static_cast<std::size_t>(k)];
    if (byte.kind == Byte::Kind::kUnused || byte.kind == Byte::Kind::kZero) continue;
    std::int32_t object = byte.object, at = byte.byte;
    if (byte.kind == Byte::Kind::kAway) {
      const std::int32_t first = at / kWord * kWord;
      object = buffer_;
      at = in_buffer_[static_cast<std::size_t>(byte.owner)].at({byte.object, first}) + at - first;
    }
    if (!pieces.empty()) {
      Piece& last = pieces.back();
      const std::int32_t stride = at - last.byte - (last.count - 1) * last.stride;
      if (last.object == object && last.first + last.count == k && (last.count == 1 || stride == last.stride)) {
        last.stride = stride;
        ++last.count;
        continue;
      }
    }
    pieces.push_back({object, at, k, 1, 1});
  }
  return pieces;
}

PieceForm Planner::form_of(const Piece& piece) {
  PieceForm form{piece.object, true, piece.first, piece.count, piece.count == 1 ? 1 : piece.stride};
  return form;
}

void Planner::add_copies(int tile, const PieceForm& form, std::int32_t target, const std::vector<Move>& moves,
                         std::map<LocalCopy, TileMask>& round) {
  for (const MoveNest& nest : as_nests(moves, tiled::kMostCopyDims, tiled::kMostCopyCount)) {
    LocalCopy copy;
    copy.source = form.object;
    copy.target = target;
    copy.source_offset = nest.first.source;
    copy.target_offset = nest.first.target;
    copy.single_bytes = form.single_bytes;
    copy.parts = form.count;
    copy.part_stride = form.stride;
    copy.first_byte = form.first;
    copy.dims = nest.dims;
    round[std::move(copy)] |= tiled::mask_of(tile);
  }
}

void Planner::plan_tile(int tile, std::int32_t scratch) {
  std::vector<Move> zeros;
  std::map<PieceForm, std::vector<Move>> single;
  std::map<std::vector<PieceForm>, std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>>> several;
  for (const Placement::OwnWord& own : to_.own_words(tile)) {
    const Word word = word_of(tile, own);
    if (const auto whole = whole_word(word)) {
      if (word[0].kind == Byte::Kind::kHere) {
        single[{whole->object, false, 0, 1, 0}].push_back({whole->byte, own.at});
        continue;
      }
      const auto owner = static_cast<std::size_t>(word[0].owner);
      if (!not_direct_[owner].contains(tile)) continue;
      single[{buffer_, false, 0, 1, 0}].push_back({in_buffer_[owner].at(*whole), own.at});
      continue;
    }
    const std::vector<Piece> pieces = pieces_of(tile, word);
    if (pieces.empty()) {
      zeros.push_back({0, own.at});
    } else if (pieces.size() == 1) {
      single[form_of(pieces[0])].push_back({pieces[0].byte, own.at});
    } else {
      std::vector<PieceForm> forms;
      std::vector<std::int32_t> bytes;
      for (const Piece& piece : pieces) {
        forms.push_back(form_of(piece));
        bytes.push_back(piece.byte);
      }
      several[std::move(forms)].emplace_back(own.at, std::move(bytes));
    }
  }
  for (const MoveNest& nest : as_nests(zeros, tiled::kMostFillDims, 1 << 15)) {
    fills_[{output_.object, nest.first.target, nest.dims}] |= tiled::mask_of(tile);
  }
  for (const auto& [form, moves] : single) add_copies(tile, form, output_.object, moves, first_round_);
  std::int32_t used = 0;  // bytes of scratch
  for (const auto& [forms, words] : several) {
    const auto parts = static_cast<std::int32_t>(forms.size());
    std::vector<Move> sums;
    for (std::size_t p = 0; p < forms.size(); ++p) {
      std::vector<Move> moves;
      std::int32_t at = used + kWord * static_cast<std::int32_t>(p);
      for (const auto& [target, bytes] : words) {
        moves.push_back({bytes[p], at});
        at += kWord * parts;
      }
      add_copies(tile, forms[p], scratch, moves, first_round_);
    }
    for (const auto& [target, bytes] : words) {
      sums.push_back({used, target});
      used += kWord * parts;
    }
    add_copies(tile, {scratch, false, 0, parts, kWord}, output_.object, sums, second_round_);
  }
  scratch_bytes_ = std::max<std::int64_t>(scratch_bytes_, used);
}

void Planner::plan_copies(std::int32_t scratch) {
  for (int t = 0; t < chip::kTiles; ++t) plan_tile(t, scratch);
}

LocalCopies Planner::take_copies() {
  LocalCopies work;
  work.output = what_.output;
  for (const auto& [fill, tiles] : fills_) {
    work.fills.push_back(fill);
    work.fills.back().tiles = tiles;
  }
  const auto take = [](const std::map<LocalCopy, TileMask>& round, std::vector<LocalCopy>& list) {
    for (const auto& [copy, tiles] : round) {
      list.push_back(copy);
      list.back().tiles = tiles;
    }
  };
  take(first_round_, work.first_round);
  take(second_round_, work.second_round);
  return work;
}

// What both steps need to know; made when the first of them is finished.
struct Plan {
  Rearrangement what;
  std::unique_ptr<Planner> planner = nullptr;
  std::int32_t buffer = tiled::kNowhere;
};

void set_size(Builder& builder, std::int32_t object, std::int64_t bytes) {
  builder.program().narrow[static_cast<std::size_t>(object)].bytes = bytes;
}

Status finish_transfers(Builder& builder, tiled::Step& step, Plan& plan) {
  plan.planner = std::make_unique<Planner>(builder, plan.what);
  plan.buffer = builder.new_narrow(0);
  plan.planner->plan_transfers(plan.buffer);
  set_size(builder, plan.buffer, plan.planner->buffer_bytes());
  if (plan.planner->buffer_bytes() > 0) step.narrow_used.push_back(plan.buffer);
  RingCopies copies = plan.planner->take_transfers();
  if (copies.copies.empty()) return ok_status();
  return set_ring_copies(builder, step, std::move(copies));
}

Status finish_copies(Builder& builder, tiled::Step& step, Plan& plan) {
  const std::int32_t scratch = builder.new_narrow(0);
  plan.planner->plan_copies(scratch);
  set_size(builder, scratch, plan.planner->scratch_bytes());
  if (plan.planner->scratch_bytes() > 0) step.narrow_used.push_back(scratch);
  if (plan.planner->buffer_bytes() > 0) step.narrow_used.push_back(plan.buffer);
  LocalCopies work = plan.planner->take_copies();
  const tiled::TiledTensor& output = builder.tensor(plan.what.output);
  work.source_zero = work.target_zero = output.zero_point;
  if (plan.what.requantizes) {
    const tiled::TiledTensor& input = builder.tensor(plan.what.operands[0].tensor);
    work.source_zero = input.zero_point;
    work.multiplier = numeric::chip_rescale_multiplier(input.scale, output.scale);
    const numeric::ChipClamp clamp =
        numeric::chip_clamp(output.scale, output.zero_point, numeric::ChipActivation::kNone);
    work.min = clamp.min;
    work.max = clamp.max;
  }
  if (work.copies()) {
    work.constants = builder.new_narrow(tiled::kIdentityWords * kWord);
    builder.program().narrow.back().fills_gaps = true;
    work.identity = builder.new_wide(1);
    step.narrow_used.push_back(work.constants);
    step.wide_used.push_back(work.identity);
  }
  step.work = std::move(work);
  plan.planner.reset();
  return ok_status();
}

}  // namespace

void add_rearrangement(Builder& builder, std::int32_t op, Rearrangement what) {
  const std::vector<Read> reads = what.operands;
  const std::int32_t output = what.output;
  const auto plan = std::make_shared<Plan>(Plan{std::move(what)});
  builder.add_step(op, RingCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_transfers(b, step, *plan); });
  builder.add_step(op, LocalCopies{}, reads, {output},
                   [plan](Builder& b, tiled::Step& step) -> Status { return finish_copies(b, step, *plan); });
}

}  // namespace reef::lower
