// SPDX-License-Identifier: Apache-2.0
#include "schedule/parameter_places.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace reef::schedule {
namespace {

using tiled::ParameterChunk;
using tiled::ParameterPiece;
using tiled::TiledProgram;

// The lines that are left, while chunks are placed one after the other.
class Lines {
 public:
  // `fills_gaps`: also lines that are left below those of parts that must begin at one line on all of their tiles.
  Lines(const TiledProgram& program, const CacheRoom& room, bool fills_gaps)
      : next_(room.first_line),
        end_(std::min(program.lowest_scratch_line, room.end_line)),
        left_(room.lines),
        fills_gaps_(fills_gaps) {}

  // False: there is no room, and nothing has changed.
  bool place(ParameterChunk& chunk) {
    if (chunk.lines > left_) return false;
    const bool done = chunk.parts() > 0    ? place_parts(chunk)
                      : chunk.in_one_piece ? place_in_gap(chunk) || place_on(emptiest(), chunk)
                                           : place_in_pieces(chunk);
    if (done) left_ -= chunk.lines;
    return done;
  }

 private:
  int emptiest() const { return static_cast<int>(std::min_element(next_.begin(), next_.end()) - next_.begin()); }
  std::int32_t& next(int tile) { return next_[at(tile)]; }

  bool place_on(int tile, ParameterChunk& chunk) {
    if (end_ - next(tile) < chunk.lines) return false;
    chunk.at = {{tile, next(tile), chunk.lines}};
    next(tile) += chunk.lines;
    return true;
  }

  bool place_parts(ParameterChunk& chunk) {
    if (chunk.parts() > chip::kTiles) return false;
    if (!chunk.parts_at_one_line) return place_parts_anywhere(chunk);
    const std::int32_t line = *std::max_element(next_.begin(), next_.begin() + chunk.parts());
    if (end_ - line < chunk.part_lines) return false;
    chunk.at = parts_at(chunk, line);
    for (const ParameterPiece& piece : chunk.at) {
      if (fills_gaps_ && line > next(piece.tile)) {
        gaps_.push_back({piece.tile, next(piece.tile), line - next(piece.tile)});
      }
      next(piece.tile) = piece.line + piece.lines;
    }
    return true;
  }

  bool place_parts_anywhere(ParameterChunk& chunk) {
    std::vector<ParameterPiece> parts = parts_at(chunk, 0);
    for (ParameterPiece& part : parts) {
      part.line = next(part.tile);
      if (end_ - part.line < part.lines) return false;
    }
    for (const ParameterPiece& part : parts) next(part.tile) += part.lines;
    chunk.at = std::move(parts);
    return true;
  }

  // The smallest gap that is large enough.
  bool place_in_gap(ParameterChunk& chunk) {
    auto best = gaps_.end();
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->lines >= chunk.lines && (best == gaps_.end() || gap->lines < best->lines)) best = gap;
    }
    if (best == gaps_.end()) return false;
    chunk.at = {{best->tile, best->line, chunk.lines}};
    best->line += chunk.lines;
    best->lines -= chunk.lines;
    return true;
  }

  // So many lines of the largest gap as it has; none where all gaps are so small that a piece of its own is not worth
  // its instructions.
  ParameterPiece take_gap(std::int32_t lines) {
    constexpr std::int32_t kFewestLines = 16;
    const auto largest =
        std::max_element(gaps_.begin(), gaps_.end(), [](const auto& a, const auto& b) { return a.lines < b.lines; });
    if (largest == gaps_.end() || largest->lines < kFewestLines) return {};
    const ParameterPiece piece = {largest->tile, largest->line, std::min(lines, largest->lines)};
    largest->line += piece.lines;
    largest->lines -= piece.lines;
    return piece;
  }

  bool place_in_pieces(ParameterChunk& chunk) {
    const auto before = next_;
    const auto gaps_before = gaps_;
    std::vector<ParameterPiece> pieces;
    std::int32_t left = chunk.lines;
    for (ParameterPiece piece = take_gap(left); piece.lines > 0; piece = take_gap(left)) {
      pieces.push_back(piece);
      left -= piece.lines;
    }
    while (left > 0) {
      const int tile = emptiest();
      const std::int32_t lines = std::min(left, end_ - next(tile));
      if (lines <= 0) {
        next_ = before;
        gaps_ = gaps_before;
        return false;
      }
      pieces.push_back({tile, next(tile), lines});
      next(tile) += lines;
      left -= lines;
    }
    chunk.at = std::move(pieces);
    return true;
  }

  std::array<std::int32_t, chip::kTiles> next_;
  const std::int32_t end_;
  std::int64_t left_;
  const bool fills_gaps_;
  std::vector<ParameterPiece> gaps_;
};

// Those with fewer choices of a place come first.
int choices(const ParameterChunk& chunk) { return chunk.parts() > 0 ? 0 : chunk.in_one_piece ? 1 : 2; }

bool place_in_order(TiledProgram& program, const std::vector<std::size_t>& order, const CacheRoom& room,
                    bool fills_gaps) {
  Lines lines(program, room, fills_gaps);
  bool all = true;
  for (ParameterChunk& chunk : program.parameters) chunk.at.clear();
  for (const std::size_t index : order) {
    ParameterChunk& chunk = program.parameters[index];
    if (!chunk.is_fetched() && !lines.place(chunk)) all = false;
  }
  return all;
}

// By chunk: bytes that would be sent if it were not kept.
std::vector<std::int64_t> bytes_saved(const TiledProgram& program) {
  std::vector<std::int64_t> saved(program.parameters.size(), 0);
  for (const tiled::Step& step : program.steps) {
    for (const std::int32_t chunk : step.parameters_used) {
      saved[at(chunk)] += static_cast<std::int64_t>(program.chunk(chunk).bytes.size());
    }
  }
  return saved;
}

bool has_its_parts(const ParameterChunk& chunk, const std::vector<ParameterPiece>& pieces) {
  std::vector<ParameterPiece> parts = parts_at(chunk, pieces.front().line);
  if (parts.size() != pieces.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!chunk.parts_at_one_line) parts[i].line = pieces[i].line;
  }
  return parts == pieces;
}

}  // namespace

std::vector<ParameterPiece> parts_at(const ParameterChunk& chunk, std::int32_t line) {
  std::vector<ParameterPiece> parts;
  for (std::int32_t left = chunk.lines; left > 0; left -= chunk.part_lines) {
    parts.push_back({static_cast<int>(parts.size()), line, std::min(left, chunk.part_lines)});
  }
  return parts;
}

void place_parameters(TiledProgram& program, const CacheRoom& room) {
  const auto& chunks = program.parameters;
  std::vector<std::size_t> order(chunks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return choices(chunks[a]) < choices(chunks[b]); });
  if (place_in_order(program, order, room, false)) return;
  const bool is_google = program.level == tiled::Level::kAsGoogle;
  if (!is_google && place_in_order(program, order, room, true)) return;
  if (room.order == CacheOrder::kFirstUse) {
    std::sort(order.begin(), order.end());  // chunks are numbered in the order of their first use
    place_in_order(program, order, room, !is_google);
    return;
  }
  const std::vector<std::int64_t> saved = bytes_saved(program);
  const bool as_google = room.order == CacheOrder::kOfLevel && is_google;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (choices(chunks[a]) != choices(chunks[b])) return choices(chunks[a]) < choices(chunks[b]);
    const std::int64_t worth_a = saved[a] * chunks[b].lines, worth_b = saved[b] * chunks[a].lines;  // per line
    if (!as_google && worth_a != worth_b) return worth_a > worth_b;
    return chunks[a].lines > chunks[b].lines;
  });
  place_in_order(program, order, room, !is_google);
}

Status use_parameter_places(TiledProgram& program, const std::vector<std::vector<ParameterPiece>>& places) {
  REEF_REQUIRE(places.size() == program.parameters.size(), "{} places were given for {} chunks", places.size(),
               program.parameters.size());
  std::array<std::vector<bool>, chip::kTiles> used;
  for (auto& lines : used) lines.resize(static_cast<std::size_t>(program.lowest_scratch_line));
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::int64_t lines = 0;
    for (const ParameterPiece& piece : places[i]) {
      REEF_REQUIRE(piece.tile >= 0 && piece.tile < chip::kTiles && piece.line >= 0 && piece.lines > 0 &&
                       std::int64_t{piece.line} + piece.lines <= program.lowest_scratch_line,
                   "chunk {} of parameters lies outside of lines 0 to {}", i, program.lowest_scratch_line);
      auto& tile = used[at(piece.tile)];
      const auto begin = tile.begin() + piece.line, end = begin + piece.lines;
      REEF_REQUIRE(std::find(begin, end, true) == end, "chunk {} of parameters overlaps others on tile {}", i,
                   piece.tile);
      std::fill(begin, end, true);
      lines += piece.lines;
    }
    ParameterChunk& chunk = program.parameters[i];
    if (places[i].empty() && chunk.can_stream) {
      chunk.at.clear();
      continue;
    }
    REEF_REQUIRE(lines == chunk.lines, "chunk {} has {} lines of parameters, places are for {}", i, chunk.lines, lines);
    REEF_REQUIRE(!chunk.in_one_piece || places[i].size() == 1, "chunk {} of parameters must be in one piece", i);
    REEF_REQUIRE(chunk.parts() == 0 || has_its_parts(chunk, places[i]),
                 "chunk {} of parameters must have each of its parts on the tile of that number{}", i,
                 chunk.parts_at_one_line ? ", all at one line" : "");
    chunk.at = places[i];
  }
  return ok_status();
}

}  // namespace reef::schedule
