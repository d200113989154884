// SPDX-License-Identifier: Apache-2.0
#include "emit/mesh_paths.h"

#include <algorithm>

#include "isa/mesh.h"

namespace reef::emit {
namespace {

// Passes of all dimensions but the outermost: what the two sides of a path count.
std::int64_t outer_passes(const std::vector<Dim>& dims) { return dims.back().count; }
int outer_level(const std::vector<Dim>& dims) { return static_cast<int>(dims.size()) - 1; }

}  // namespace

std::int64_t Words::count() const {
  std::int64_t words = 1;
  for (const Dim& dim : dims) words *= dim.count;
  return words;
}

std::vector<Dim> joined_dims(std::initializer_list<Dim> dims) {
  std::vector<Dim> result;
  for (const Dim& dim : dims) {
    if (dim.count == 1 && !result.empty()) continue;
    if (!result.empty() && dim.stride == result.back().stride * result.back().count) {
      result.back().count *= dim.count;
    } else {
      result.push_back(dim);
    }
  }
  return result;
}

TileMoves::TileMoves(ProgramWriter& writer, Opcode opcode, std::int64_t relay)
    : writer_(writer), opcode_(opcode), relay_(relay) {
  for (int t = 0; t < chip::kTiles; ++t) {
    in_[at(t)] = writer.total(isa::mesh::in_counter(opcode), t);
    out_[at(t)] = writer.total(isa::mesh::out_counter(opcode), t);
  }
}

void TileMoves::add_copy(int tile, std::vector<Draft> drafts) {
  for (Draft& draft : drafts) {
    Move move;
    move.tile = tile;
    move.unit = unit_;
    move.path = {tile};
    move.draft = std::move(draft);
    moves_.push_back(std::move(move));
  }
}

void TileMoves::add_path(std::vector<int> tiles, Words from, Words to) {
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const int tile = tiles[i];
    Move move;
    move.tile = tile;
    move.unit = unit_;
    move.path = tiles;
    move.words = from.count();
    if (i == 0) {
      const auto before = last_mesh_[at(tile)];
      if (before && moves_[*before].kind == Kind::kReceive) {
        moves_[*before].kind = Kind::kReceiveAndSend;
        moves_[*before].from = from;
        continue;
      }
      move.kind = Kind::kSend;
      move.from = from;
    } else {
      const bool ends = i + 1 == tiles.size();
      move.kind = ends ? Kind::kReceive : Kind::kRelay;
      if (ends) move.to = to;
      move.sender = last_mesh_[at(tiles[i - 1])];
    }
    last_mesh_[at(tile)] = moves_.size();
    moves_.push_back(std::move(move));
  }
}

void TileMoves::make_draft(Move& move) {
  namespace m = isa::mesh;
  const auto sent = m::producers(opcode_)[0], received = m::producers(opcode_)[1];
  std::int64_t &in = in_[at(move.tile)], &out = out_[at(move.tile)];
  Draft draft(opcode_);
  if (move.kind == Kind::kRelay) {
    const LoopNest through = LoopNest(relay_, {repeat(move.words)}).swap(0, 1);
    draft.nest(m::kIn, through)
        .nest(m::kOut, through)
        .wait(m::in_counter(opcode_), {0, in + 1, 1})
        .wait(m::out_counter(opcode_), {0, out - 1, 1}, Gate::kWriting)
        .signal(sent, 0)
        .signal(received, 0);
    in += move.words;
    out += move.words;
  }
  if (!move.from.dims.empty()) {
    draft.nest(m::kIn, LoopNest(move.from.first, move.from.dims)).signal(sent, outer_level(move.from.dims));
    out += outer_passes(move.from.dims);
  }
  if (!move.to.dims.empty()) {
    draft.nest(m::kOut, LoopNest(move.to.first, move.to.dims)).signal(received, outer_level(move.to.dims));
    in += outer_passes(move.to.dims);
  }
  move.draft = std::move(draft);
}

int TileMoves::place_of(const Move& move) const {
  if (move.kind == Kind::kCopy) return -1;
  const bool vertical = opcode_ == Opcode::kMeshNorth || opcode_ == Opcode::kMeshSouth;
  return vertical ? chip::tile_row(move.tile) : chip::tile_column(move.tile);
}

// A receive whose words come through a relay or from a tile that receives itself, and one right behind a shared relay.
bool TileMoves::must_stay_alone(const Move& move, const std::vector<Shared>& written) const {
  const auto passes_on = [](Kind kind) { return kind == Kind::kRelay || kind == Kind::kReceiveAndSend; };
  if (move.kind != Kind::kReceive && move.kind != Kind::kReceiveAndSend) return false;
  if (move.sender && passes_on(moves_[*move.sender].kind)) return true;
  const auto before = last_written_[at(move.tile)];
  if (!before || last_unit_[at(move.tile)] != move.unit) return false;
  const Shared& last = written[*before];
  return passes_on(last.kind) && (last.tiles & (last.tiles - 1)) != 0;
}

void TileMoves::write() && {
  std::vector<Shared> written;
  for (Move& move : moves_) {
    if (move.kind != Kind::kCopy) make_draft(move);
  }
  for (const Move& move : moves_) {
    const TileMask mask = tiled::mask_of(move.tile);
    const int place = place_of(move);
    // The newest that is equal: only that one can be shared.
    std::size_t index = written.size();
    while (index > 0 && !(written[index - 1].place == place &&
                          written[index - 1].draft.instruction() == move.draft->instruction())) {
      --index;
    }
    const auto is_earlier = [&](int tile) { return !last_written_[at(tile)] || *last_written_[at(tile)] + 1 < index; };
    const bool shares = index > 0 && (written[index - 1].tiles & mask) == 0 && !must_stay_alone(move, written) &&
                        std::all_of(move.path.begin(), move.path.end(), is_earlier);
    if (shares) {
      written[index - 1].tiles |= mask;
      --index;
    } else {
      index = written.size();
      written.push_back({*move.draft, mask, place, move.kind, move.unit});
    }
    last_written_[at(move.tile)] = index;
    last_unit_[at(move.tile)] = move.unit;
  }
  for (Shared& instruction : written) writer_.add(instruction.draft.tiles(instruction.tiles));
}

}  // namespace reef::emit
