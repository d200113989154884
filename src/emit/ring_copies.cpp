// SPDX-License-Identifier: Apache-2.0
// Copies over the ring, from any tile to any set of tiles.
//
//   narrow memory -> narrow_to_wide -> two lines -> ring A -> two lines -> wide_to_narrow -> narrow memory
//
// A copy is four instructions: two where it goes, which wait, then two where it comes from. Words travel in lines of
// 64; a line is closed when it is full or when the copy ends. Lines are used in turn, from copy to copy; the fence at
// the beginning starts all turns anew. Waits:
//   narrow_to_wide   RING_WRITE: the line before last has been sent
//   ring_send        NARROW_TO_WIDE: the line is filled; RING_PRODUCER_A: all senders before have finished
//   ring_receive     WIDE_TO_NARROW: all words of the line before last have been read
//   wide_to_narrow   RING_READ_A: the line has come
// The third is counted in words. Between copies the number that the line before last ends with depends on how full the
// last one was; within a copy it grows by 64. So there are two waits where these disagree: one for the first line, one
// for all that follow.
//
// It begins with a fence on each tile: what it reads and overwrites is that tile's own. Only behind an input, which
// takes no turns on the ring, it must be a barrier for all.
//
// Copies that differ only in where they come from and by equal steps in where they go (gathers and broadcasts) share
// what they can: one instruction fills the lines of all senders, one receives all lines and one reads them; each sender
// still takes its own turn.
//
// Nothing can stand still: copies are queued in one order on all tiles, and the oldest that is not finished has all its
// four instructions at the head of their queues.
//
// How it is known: for copies of up to 64 words, Google's newest compiler writes these four instructions (identical
// rows in its classification heads and dense networks). Its third wait is for "all words less 64", which is too early
// after lines that were not full: a receiver that is slow to read loses data. That is kept where asked for
// (RingCopies::google_pace). Longer copies are our own.
#include <algorithm>
#include <utility>

#include "emit/ring_copy_writer.h"
#include "isa/movers.h"
#include "isa/ring.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;

int levels(const LoopNest& nest) { return static_cast<int>(nest.dims().size()); }

}  // namespace

RingCopyWriter::RingCopyWriter(Emission& to, std::int32_t lines, bool google_pace)
    : BlockWriter(to), google_pace_(google_pace), send_line_(lines), receive_line_(lines + tiled::kRingCopyReceive) {}

void RingCopyWriter::start() {
  for (int t = 0; t < chip::kTiles; ++t) {
    Read& read = read_[at(t)];
    read.all = read.before_last = writer_.total(TileCounter::kWideToNarrow, t);
  }
}

void RingCopyWriter::write(const tiled::RingCopy& copy) {
  const std::int64_t words = copy.source.words();
  const std::int64_t lines = (words + kLineWords - 1) / kLineWords;
  read_lines(copy, lines);
  receive(copy, lines);
  send(copy, lines);
  fill_lines(copy, lines);
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((copy.to & tiled::mask_of(t)) == 0) continue;
    Read& read = read_[at(t)];
    read.before_last = read.all + (lines - 1) * kLineWords;
    read.all += words;
  }
}

// Lines of a pair in turn.
LoopNest RingCopyWriter::pair_of_lines(std::int32_t first, std::int64_t lines, bool used) {
  return LoopNest(first, {{1, 1, used}, repeat(lines)}).swap(1, 1);
}

// The same of a copy's own side: Google's programs have one dimension less where there are several lines.
LoopNest RingCopyWriter::lines_in_turn(std::int32_t first, std::int64_t lines) const {
  if (line_level(lines) == 0) return LoopNest(first, {repeat(lines)}).swap(0, 1);
  return pair_of_lines(first, lines, false);
}

// The words of a walk: dimensions that only step once left out, those that follow on joined.
LoopNest RingCopyWriter::words_of(const tiled::WordWalk& walk) const {
  std::vector<Dim> dims;
  for (const tiled::WordStep& dim : walk.dims) {
    if (dim.count == 1) continue;
    if (!dims.empty() && dim.stride == dims.back().stride * dims.back().count) {
      dims.back().count *= dim.count;
    } else {
      dims.push_back(step(dim.stride, dim.count));
    }
  }
  if (dims.empty()) dims.push_back({1, 1, false});
  return LoopNest((program_.address_of(walk.object) + walk.offset) / kWord, std::move(dims));
}

void RingCopyWriter::read_lines(const tiled::RingCopy& copy, std::int64_t lines) {
  const LoopNest words = words_of(copy.target);
  const auto received = [&](int tile) { return writer_.total(TileCounter::kRingReadA, tile); };
  for_each_class(copy.to, received, [&](TileMask tiles, std::int64_t had) {
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiles)
                    .nest(m::kToNarrowIn, lines_in_turn(receive_line_, lines))
                    .nest(m::kToNarrowOut, words)
                    .set(m::kToNarrowLineLevel, levels(words))
                    .wait(TileCounter::kRingReadA, {line_level(lines), had + 1, 1})
                    .signal(m::kSignalWideToNarrow, copy.target.words() == 1 ? 1 : 0));
  });
}

void RingCopyWriter::receive(const tiled::RingCopy& copy, std::int64_t lines) {
  const auto read = [&](int tile) { return read_[at(tile)]; };
  for_each_class(copy.to, read, [&](TileMask tiles, const Read& words) {
    Draft draft(Opcode::kRingReceiveA);
    draft.tiles(tiles).nest(isa::ring::kReceiveOut, lines_in_turn(receive_line_, lines));
    const std::int64_t all_but_one = words.all - kLineWords;
    if (!google_pace_ && words.before_last > all_but_one) {
      draft.wait(TileCounter::kWideToNarrow, {2, words.before_last, 0}, Gate::kWriting);
    }
    if (google_pace_ || lines > 1 || words.before_last <= all_but_one) {
      draft.wait(TileCounter::kWideToNarrow, {line_level(lines), all_but_one, kLineWords}, Gate::kWriting);
    }
    writer_.add(draft.signal(isa::ring::kSignalRingReadA, line_level(lines)));
  });
}

void RingCopyWriter::send(const tiled::RingCopy& copy, std::int64_t lines) {
  namespace r = isa::ring;
  writer_.add(Draft(Opcode::kRingSend)
                  .tiles(tiled::mask_of(copy.from))
                  .nest(r::kSendIn, pair_of_lines(send_line_, lines, true))
                  .wait(TileCounter::kRingProducerA, {2, writer_.total(TileCounter::kRingProducerA, copy.from), 1})
                  .wait(TileCounter::kNarrowToWide, {1, writer_.total(TileCounter::kNarrowToWide, copy.from) + 1, 1})
                  .signal(r::kSignalRingWrite, 1)
                  .signal(r::kSignalRingProducer, 2)
                  .set(r::kToTiles, copy.to));
}

void RingCopyWriter::fill_lines(const tiled::RingCopy& copy, std::int64_t lines) {
  const LoopNest words = words_of(copy.source);
  // What has been sent when this copy's lines begin: its own sends are queued already.
  const std::int64_t sent = writer_.total(TileCounter::kRingWrite, copy.from) - lines;
  writer_.add(Draft(Opcode::kNarrowToWide)
                  .tiles(tiled::mask_of(copy.from))
                  .nest(m::kToWideIn, words)
                  .nest(m::kToWideOut, lines_in_turn(send_line_, lines))
                  .set(m::kToWideLineLevel, levels(words))
                  .wait(TileCounter::kRingWrite, {line_level(lines), sent - 1, 1}, Gate::kWriting)
                  .signal(m::kSignalNarrowToWide, line_level(lines)));
}

// Lines that follow each other are then free after equally many words: lines are full, or there is one for each copy.
// The first of them come after lines that are all read (nothing was written since start), or after some like them.
std::size_t RingCopyWriter::can_share(std::span<const tiled::RingCopy> copies) const {
  const tiled::RingCopy& first = copies[0];
  const std::int64_t words = first.source.words();
  std::size_t count = 1;
  TileMask sources = tiled::mask_of(first.from);
  for (; count < copies.size(); ++count) {
    const tiled::RingCopy &copy = copies[count], &second = copies[1];
    const std::int64_t step = std::int64_t{second.target.offset} - first.target.offset;
    const bool same_target = copy.target.object == first.target.object && copy.target.dims == first.target.dims &&
                             copy.target.offset == first.target.offset + static_cast<std::int64_t>(count) * step;
    if (copy.to != first.to || copy.source != first.source || !same_target) break;
    if ((sources & tiled::mask_of(copy.from)) != 0) break;
    sources |= tiled::mask_of(copy.from);
  }
  const bool is_even = words <= kLineWords || words % kLineWords == 0;
  bool is_free = true;
  for (int t = 0; t < chip::kTiles; ++t) {
    const Read& read = read_[at(t)];
    if ((first.to & tiled::mask_of(t)) != 0 && read.before_last != read.all) is_free = false;
  }
  const bool fits = first.target.dims.size() < tiled::kMostWalkDims;
  return is_even && is_free && fits ? count : 1;
}

void RingCopyWriter::write_shared(std::span<const tiled::RingCopy> copies) {
  const tiled::RingCopy& first = copies[0];
  const auto count = static_cast<std::int64_t>(copies.size());
  const std::int64_t words = first.source.words(), line_words = std::min<std::int64_t>(words, kLineWords);
  const std::int64_t lines = (words + kLineWords - 1) / kLineWords;
  const LoopNest one = words_of(first.target), source = words_of(first.source);
  std::vector<Dim> target = one.dims();
  target.push_back(step((copies[1].target.offset - first.target.offset) / kWord, count));
  const std::int64_t target_word = (program_.address_of(first.target.object) + first.target.offset) / kWord;
  using Totals = std::pair<std::int64_t, std::int64_t>;
  const auto totals = [&](int tile) {
    return Totals(writer_.total(TileCounter::kRingReadA, tile), read_[at(tile)].all);
  };
  for_each_class(first.to, totals, [&](TileMask tiles, const Totals& had) {
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiles)
                    .nest(m::kToNarrowIn, pair_of_lines(receive_line_, lines * count, false))
                    .nest(m::kToNarrowOut, LoopNest(target_word, target))
                    .set(m::kToNarrowLineLevel, levels(one))
                    .wait(TileCounter::kRingReadA, {1, had.first + 1, 1})
                    .signal(m::kSignalWideToNarrow, 0));
    writer_.add(Draft(Opcode::kRingReceiveA)
                    .tiles(tiles)
                    .nest(isa::ring::kReceiveOut, pair_of_lines(receive_line_, lines * count, false))
                    .wait(TileCounter::kWideToNarrow, {1, had.second - line_words, line_words}, Gate::kWriting)
                    .signal(isa::ring::kSignalRingReadA, 1));
  });
  TileMask sources = 0;
  for (const tiled::RingCopy& copy : copies) {
    sources |= tiled::mask_of(copy.from);
    send(copy, lines);
  }
  const auto sent = [&](int tile) { return writer_.total(TileCounter::kRingWrite, tile) - lines; };
  for_each_class(sources, sent, [&](TileMask tiles, std::int64_t before) {
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(tiles)
                    .nest(m::kToWideIn, source)
                    .nest(m::kToWideOut, pair_of_lines(send_line_, lines, false))
                    .set(m::kToWideLineLevel, levels(source))
                    .wait(TileCounter::kRingWrite, {1, before - 1, 1}, Gate::kWriting)
                    .signal(m::kSignalNarrowToWide, 1));
  });
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((first.to & tiled::mask_of(t)) == 0) continue;
    Read& read = read_[at(t)];
    read.all += words * count;
    read.before_last = read.all - line_words;
  }
}

void emit_step(Emission& to, const tiled::RingCopies& step) {
  if (step.copies.empty()) return;  // a movement in which every tile has what it needs
  // Barriers are where a long program can be cut into pieces.
  constexpr std::size_t kCopiesBetweenBarriers = 128;
  RingCopyWriter writer(to, to.program.line_of(step.lines), step.google_pace);
  const bool shares = to.program.level != tiled::Level::kAsGoogle;
  std::size_t since_barrier = 0;
  for (std::span<const tiled::RingCopy> rest = step.copies; !rest.empty();) {
    if (since_barrier >= kCopiesBetweenBarriers) {
      to.writer.barrier();
      since_barrier = 0;
    }
    if (since_barrier == 0) {
      if (to.writer.pop_may_be_sending()) {
        to.writer.barrier();
      } else {
        to.writer.tile_fence(kAllUnits, kCountersOfTiles);
      }
      writer.start();
    }
    const std::size_t count = shares ? writer.can_share(rest) : 1;
    if (count > 1) {
      writer.write_shared(rest.first(count));
    } else {
      writer.write(rest.front());
    }
    since_barrier += count;
    rest = rest.subspan(count);
  }
  if (step.output == tiled::kNowhere || !to.program.tensor(step.output).has_halo()) return;
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  exchange_halo(to.writer, to.program.tensor(step.output), nullptr);
}

}  // namespace reef::emit
