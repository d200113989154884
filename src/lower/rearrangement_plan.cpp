// SPDX-License-Identifier: Apache-2.0
#include "lower/rearrangement_plan.h"

#include <algorithm>

namespace reef::lower {
namespace {

using tiled::CopyDim;
using tiled::LocalCopies;
using tiled::LocalCopy;
using tiled::RingCopy;
using tiled::TileMask;

// Copies over the ring from one tile to another that go directly where the words belong; if it takes more, the words go
// to a buffer first.
constexpr std::size_t kMostDirectCopies = 8;
// Copies of words from one tile to the same others; if it takes more, everything between them is sent along.
constexpr std::size_t kMostBufferCopies = 6;
// What a copy over the ring takes besides a cycle for each word; an estimate, of its instructions mostly.
constexpr std::size_t kCyclesPerCopy = 100;
constexpr std::int32_t kMostWalkCount = 1 << 15;

}  // namespace

RearrangementPlan::Word RearrangementPlan::word_of(int tile, const Placement::OwnWord& own) const {
  Word word;
  for (std::int32_t k = 0; k < own.elements;) {
    const ElementSource source = what_.source_of(own.first + k);
    auto count = static_cast<std::int32_t>(std::min<std::int64_t>(source.run, own.elements - k));
    Byte byte;
    if (source.operand >= 0) {
      const Placement& from = from_[reef::at(source.operand)];
      if (!from.has(source.element)) {
        reads_outside_ = true;
        return Word();
      }
      count = static_cast<std::int32_t>(std::min<std::int64_t>(count, from.elements_together(source.element)));
      byte.object = from_roles_[reef::at(source.operand)];
      byte.byte = from.byte_on(tile, source.element);
      byte.kind = Byte::Kind::kHere;
      byte.owner = tile;
      if (byte.byte == Placement::kNotHere) {
        byte.kind = Byte::Kind::kAway;
        byte.owner = from.owner(source.element, tile);
        byte.byte = from.byte_on(byte.owner, source.element);
      }
    } else if (source.operand == ElementSource::kZeroPoint) {
      byte.kind = Byte::Kind::kZero;
    }
    for (std::int32_t i = 0; i < count; ++i) {
      word[reef::at(k + i)] = byte;
      if (source.operand >= 0) ++byte.byte;
    }
    k += count;
  }
  return word;
}

std::optional<WordPlace> RearrangementPlan::whole_word(const Word& word) {
  const Byte& first = word[0];
  if (first.kind != Byte::Kind::kHere && first.kind != Byte::Kind::kAway) return std::nullopt;
  if (first.byte % kWord != 0) return std::nullopt;
  for (std::int32_t k = 1; k < kWord; ++k) {
    const Byte& byte = word[reef::at(k)];
    if (byte.kind == Byte::Kind::kUnused) continue;
    if (byte.kind != first.kind || byte.owner != first.owner || byte.object != first.object ||
        byte.byte != first.byte + k) {
      return std::nullopt;
    }
  }
  return WordPlace{first.object, first.byte};
}

// ---- From other tiles ----

void RearrangementPlan::collect(int tile) {
  for (const Placement::OwnWord& own : to_.own_words(tile)) {
    const Word word = word_of(tile, own);
    if (const auto whole = whole_word(word); whole && word[0].kind == Byte::Kind::kAway) {
      direct_[reef::at(word[0].owner)][reef::at(tile)].push_back({{whole->byte, own.at}, whole->object});
      continue;
    }
    for (const Byte& byte : word) {
      if (byte.kind != Byte::Kind::kAway) continue;
      wanted_[reef::at(byte.owner)][{byte.object, byte.byte / kWord * kWord}] |= tiled::mask_of(tile);
    }
  }
}

void RearrangementPlan::send(int from, TileMask to, std::int32_t source, std::int32_t target,
                             const std::vector<Move>& moves) {
  for (const MoveNest& nest : as_nests(moves, tiled::kMostWalkDims, kMostWalkCount)) {
    RingCopy copy{from, to, {source, nest.first.source, {}}, {target, nest.first.target, {}}};
    for (const CopyDim& dim : nest.dims) {
      copy.source.dims.push_back({dim.source_stride / kWord, dim.count});
      copy.target.dims.push_back({dim.target_stride / kWord, dim.count});
    }
    transfers_.push_back(std::move(copy));
  }
}

// Words of one tile that go directly to their places. Those that go to the same place on several tiles go together.
void RearrangementPlan::plan_direct(int from) {
  auto& lists = direct_[reef::at(from)];
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, TileMask> targets;  // object, target, source
  for (std::size_t t = 0; t < kPlanTiles; ++t) {
    std::map<std::int32_t, std::vector<Move>> moves;  // by object
    for (const Transfer& transfer : lists[t]) moves[transfer.object].push_back(transfer.move);
    std::size_t copies = 0;
    for (const auto& [object, list] : moves) copies += as_nests(list, tiled::kMostWalkDims, kMostWalkCount).size();
    const TileMask mask = tiled::mask_of(static_cast<int>(t));
    if (copies > kMostDirectCopies) {
      not_direct_[reef::at(from)].insert(static_cast<int>(t));
      for (const Transfer& transfer : lists[t]) {
        wanted_[reef::at(from)][{transfer.object, transfer.move.source}] |= mask;
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
  for (const auto& [group, moves] : groups) send(from, group.first, group.second, output_role_, moves);
}

// Words of one tile that others want in their buffers: which go together, to the same place in several tiles.
RearrangementPlan::Groups RearrangementPlan::best_groups(const std::map<WordPlace, TileMask>& wanted) {
  // As one copy to all that want them; to each tile by itself; or everything to all that want anything.
  Groups exact, single, all;
  TileMask any = 0;
  for (const auto& [place, mask] : wanted) any |= mask;
  for (const auto& [place, mask] : wanted) {
    exact[{mask, place.object}].push_back(place.byte);
    all[{any, place.object}].push_back(place.byte);
    for (int t = 0; t < chip::kTiles; ++t) {
      if ((mask & tiled::mask_of(t)) != 0) single[{tiled::mask_of(t), place.object}].push_back(place.byte);
    }
  }
  const auto cost = [](const Groups& groups) {
    std::size_t cycles = 0;
    for (const auto& [group, bytes] : groups) {
      const std::size_t copies = as_nests(moves_to_buffer(bytes, 0), tiled::kMostWalkDims, kMostWalkCount).size();
      cycles += bytes.size() + kCyclesPerCopy * std::min(copies, kMostBufferCopies);
    }
    return cycles;
  };
  const std::size_t of_exact = cost(exact), of_single = cost(single), of_all = cost(all);
  if (of_exact <= of_single && of_exact <= of_all) return exact;
  return of_single <= of_all ? single : all;
}

// The words one after the other, or, where that would take too many copies, everything between them too.
std::vector<Move> RearrangementPlan::moves_to_buffer(const std::vector<std::int32_t>& bytes, std::int32_t base) {
  std::vector<Move> moves;
  for (const std::int32_t byte : bytes) {
    moves.push_back({byte, base + kWord * static_cast<std::int32_t>(moves.size())});
  }
  if (as_nests(moves, tiled::kMostWalkDims, kMostWalkCount).size() <= kMostBufferCopies) return moves;
  moves.clear();
  for (std::int32_t byte = bytes.front(); byte <= bytes.back(); byte += kWord) {
    moves.push_back({byte, base + byte - bytes.front()});
  }
  return moves;
}

void RearrangementPlan::plan_buffer(int from) {
  for (const auto& [group, bytes] : best_groups(wanted_[reef::at(from)])) {
    const auto& [mask, object] = group;
    std::int32_t base = 0;
    for (std::size_t t = 0; t < kPlanTiles; ++t) {
      if ((mask >> t & 1) != 0) base = std::max(base, filled_[t]);
    }
    const std::vector<Move> moves = moves_to_buffer(bytes, base);
    send(from, mask, object, buffer_, moves);
    const std::int32_t end = moves.back().target + kWord;
    for (std::size_t t = 0; t < kPlanTiles; ++t) {
      if ((mask >> t & 1) == 0) continue;
      filled_[t] = end;
      for (const Move& move : moves) in_buffer_[t][{from, object, move.source}] = move.target;
    }
    buffer_bytes_ = std::max<std::int64_t>(buffer_bytes_, end);
  }
}

void RearrangementPlan::plan_transfers() {
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((planned_ & tiled::mask_of(t)) != 0) collect(t);
  }
  for (int t = 0; t < chip::kTiles; ++t) {
    plan_direct(t);
    plan_buffer(t);
  }
}

// ---- Within a tile ----

// The word's bytes as they lie now, in as few pieces as possible; none: all of it is the zero point.
std::vector<Piece> RearrangementPlan::pieces_of(int tile, const Word& word) const {
  std::vector<Piece> pieces;
  for (std::int32_t k = 0; k < kWord; ++k) {
    const Byte& byte = word[reef::at(k)];
    if (byte.kind == Byte::Kind::kUnused || byte.kind == Byte::Kind::kZero) continue;
    std::int32_t object = byte.object, at = byte.byte;
    if (byte.kind == Byte::Kind::kAway) {
      const std::int32_t first = at / kWord * kWord;
      object = buffer_;
      at = in_buffer_[reef::at(tile)].at({byte.owner, byte.object, first}) + at - first;
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

PieceForm RearrangementPlan::form_of(const Piece& piece) {
  return {piece.object, true, piece.first, piece.count, piece.count == 1 ? 1 : piece.stride};
}

void RearrangementPlan::add_copies(int tile, const PieceForm& form, std::int32_t target, const std::vector<Move>& moves,
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

void RearrangementPlan::plan_tile(int tile) {
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
      const int owner = word[0].owner;
      if (!not_direct_[reef::at(owner)].contains(tile)) continue;
      const std::int32_t at = in_buffer_[reef::at(tile)].at({owner, whole->object, whole->byte});
      single[{buffer_, false, 0, 1, 0}].push_back({at, own.at});
      continue;
    }
    const auto is_unused = [](const Byte& byte) { return byte.kind == Byte::Kind::kUnused; };
    if (std::all_of(word.begin(), word.end(), is_unused)) continue;
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
    fills_[{output_role_, nest.first.target, nest.dims}] |= tiled::mask_of(tile);
  }
  for (const auto& [form, moves] : single) add_copies(tile, form, output_role_, moves, first_round_);
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
      add_copies(tile, forms[p], scratch_, moves, first_round_);
    }
    for (const auto& [target, bytes] : words) {
      sums.push_back({used, target});
      used += kWord * parts;
    }
    add_copies(tile, {scratch_, false, 0, parts, kWord}, output_role_, sums, second_round_);
  }
  scratch_bytes_ = std::max<std::int64_t>(scratch_bytes_, used);
}

void RearrangementPlan::plan_copies() {
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((planned_ & tiled::mask_of(t)) != 0) plan_tile(t);
  }
}

LocalCopies RearrangementPlan::take_copies() {
  LocalCopies work;
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

PlannedMovement RearrangementPlan::plan() {
  plan_transfers();
  plan_copies();
  return {std::move(transfers_), take_copies(), buffer_bytes_, scratch_bytes_};
}

}  // namespace reef::lower
