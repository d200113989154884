// SPDX-License-Identifier: Apache-2.0
// Ring and the movers between the memories of a tile, step by step.
//
// Every step counts its agent's clock up before it accesses anything, and signals after it has.
#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "audit/walk.h"

namespace reef::audit {
namespace {

// Lines of a ring channel to a tile that are under way at once.
constexpr std::size_t kRingDepth = chip::kRingLinesNeeded;

// Readers of the memories, in the order of their logs.
enum NarrowReader : std::size_t { kTensorReads, kPackerReads };
enum WideReader : std::size_t { kTensorReadsLines, kUnpackerReads, kRingReads };

// 1 to 64 of them.
constexpr std::uint64_t first_bits(std::int64_t count) { return ~std::uint64_t{0} >> (64 - count); }

// A bit for each of 1 to 64 words that something wrote.
std::uint64_t words_written(const std::vector<std::uint8_t>& written, std::int64_t word, std::int64_t count) {
  const std::uint8_t* first = written.data() + word;
  if (std::memchr(first, 0, static_cast<std::size_t>(count)) == nullptr) return first_bits(count);
  std::uint64_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) bits |= std::uint64_t{first[i] != 0} << i;
  return bits;
}

}  // namespace

// ---- Memories ----

std::uint64_t Walk::read_line(TileState& tile, std::int64_t line, const Agent& agent, std::size_t reader) {
  read(*tile.wide, line, agent, reader);
  if (!tile.wide->holds(line)) return 0;
  const auto at = static_cast<std::size_t>(line);
  if (!tile.wide->is_written(line) && tile.wide_written[at] != 0) tile.wide_relied_on[at] = 1;
  return tile.wide_written[at];
}

void Walk::write_line(TileState& tile, std::int64_t line, const Agent& agent, std::uint64_t written) {
  if (!write(*tile.wide, line, agent)) return;
  const auto at = static_cast<std::size_t>(line);
  tile.wide_written[at] = written;
  if (tile.wide_relied_on[at] == 0) return;
  report_here(FindingKind::kRepetition, agent, "overwrites what this program has read and another program left there",
              tile.wide->name(), line);
}

void Walk::write_word(TileState& tile, std::int64_t word, const Agent& agent, bool is_written) {
  if (write(*tile.narrow, word, agent)) tile.narrow_written[reef::at(word)] = is_written ? 1 : 0;
}

// ---- Ring ----

bool Walk::has_room(std::uint16_t tiles, int channel, bool to_scalar) const {
  if (to_scalar && to_scalar_.size() >= kRingDepth) return false;
  for (std::uint32_t left = tiles; left != 0; left &= left - 1) {
    const TileState& tile = *tiles_[reef::at(std::countr_zero(left))];
    if (tile.ring[reef::at(channel)].size() >= kRingDepth) return false;
  }
  return true;
}

// Lines for one channel of a tile must come in an order that the program enforces, and whoever sends on a channel must
// know that it is its turn.
void Walk::send_line(Agent& agent, std::uint16_t tiles, int channel, bool to_scalar, std::uint64_t written) {
  const Stamp stamp = agent.stamp();
  const std::string_view name = channel == 0 ? "ring channel A" : "ring channel B";
  const auto follow = [&](FindingKind kind, Stamp& last, int tile) {
    if (last.clock != 0 && !agent.knows(last)) report(kind, last.agent, last.clock, agent, name, tile);
    last = stamp;
  };
  ++statistics_.messages;
  const auto c = static_cast<std::size_t>(channel);
  for (std::uint32_t left = tiles; left != 0; left &= left - 1) {
    TileState& tile = *tiles_[reef::at(std::countr_zero(left))];
    tile.ring[c].push_back({stamp, written});
    follow(FindingKind::kMessageOrder, tile.last_line[c], tile.number);
    const auto unit = channel == 0 ? isa::Unit::kRingReceiveA : isa::Unit::kRingReceiveB;
    wake(tile.number * kActorsPerTile + static_cast<int>(unit));
  }
  if (tiles != 0) follow(FindingKind::kRingTurn, ring_turn_[c], -1);
  if (!to_scalar) return;
  to_scalar_.push_back({stamp, written});
  follow(FindingKind::kMessageOrder, last_to_scalar_, -1);
  wake(kOutfeedActor);
}

void Walk::took_line(int channel) {
  auto& sleepers = ring_sleepers_[reef::at(channel)];
  for (const int actor : sleepers) wake(actor);
  sleepers.clear();
}

bool Walk::ring_send(Worker& worker, const isa::RingSend& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
    if (!has_room(op.to_tiles, op.channel, op.to_scalar)) {
      ring_sleepers_[0].push_back(worker.actor);
      if (op.channel != 0) ring_sleepers_[1].push_back(worker.actor);
      return false;
    }
    if (!spend(1)) return false;
    agent.tick();
    const std::uint64_t written = read_line(tile, worker.first.address(), agent, kRingReads);
    send_line(agent, op.to_tiles, op.channel, op.to_scalar, written);
    worker.first.advance();
    const std::int64_t position = worker.first.position();
    signal(agent, tile.counters[op.ring_write.counter], worker.first_passes.up_to(position));
    signal_ring(agent, op.channel, worker.second_passes.up_to(position));
  }
  return true;
}

bool Walk::ring_receive(Worker& worker, const isa::RingReceive& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  auto& lines = tile.ring[reef::at(op.channel)];
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
    if (lines.empty() || !spend(1)) return false;
    agent.learn(lines.front().sent);
    agent.tick();
    const std::uint64_t written = lines.front().written;
    lines.pop_front();
    took_line(op.channel);
    const bool is_header = op.has_header && !worker.header_done && worker.first.begins_pass(op.header_level);
    if (is_header) {
      const std::int64_t pass = op.out.passes_before(worker.first.position(), op.header_level);
      const std::int64_t buffers = std::max<std::int64_t>(op.header_buffers, 1);
      write_line(tile, op.header_first + op.header_step * (pass % buffers) + worker.header_line, agent, written);
      worker.header_done = ++worker.header_line >= op.header_lines;
      if (worker.header_done) worker.header_line = 0;
      continue;
    }
    write_line(tile, worker.first.address(), agent, written);
    worker.first.advance();
    worker.header_done = false;
    signal(agent, tile.counters[op.read.counter], worker.first_passes.up_to(worker.first.position()));
  }
  return true;
}

// ---- Between the memories of a tile ----

std::int64_t Walk::words_together(const isa::NestShape& nest, const isa::NestCursor& cursor, const Gate& gate,
                                  std::int64_t line_word) {
  if (nest.stride[0] != 1 || (nest.buffer_stride != 0 && nest.buffer_level == 0)) return 1;
  std::int64_t words = std::min(cursor.run(), kLineWords - line_word);
  if (gate.next_any != kNever) words = std::min(words, gate.next_any - cursor.position());
  return words;
}

// A line is packed word by word, each as its waits permit, and stored when it is complete.
bool Walk::narrow_to_wide(Worker& worker, const isa::NarrowToWide& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  const std::int64_t base = op.base_register < 0 ? 0 : std::int64_t{worker.job.base} - op.in.base;
  while (!worker.second.done()) {
    std::uint64_t& written = worker.line_written;
    while (!worker.first.done() && worker.line_word < kLineWords &&
           (worker.line_word == 0 || !worker.first.begins_pass(op.line_level))) {
      if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
      const std::int64_t word = worker.first.address() + base;
      // Several at once, if nothing is to be reported: nobody learns of one of them without the others.
      const std::int64_t together =
          op.line_level == 0 ? 1 : words_together(op.in, worker.first, worker.first_gate, worker.line_word);
      if (together > 1 && tile.narrow->holds(word) && tile.narrow->holds(word + together - 1) &&
          tile.narrow->knows_writes(word, together, agent)) {
        if (!spend(together)) return false;
        agent.tick(static_cast<Clock>(together));
        statistics_.reads += together;
        tile.narrow->note_reads(word, together, agent, kPackerReads);
        written |= words_written(tile.narrow_written, word, together) << worker.line_word;
        worker.first.advance(together);
        worker.line_word += together;
        continue;
      }
      if (!spend(1)) return false;
      agent.tick();
      read(*tile.narrow, word, agent, kPackerReads);
      if (tile.narrow->holds(word) && tile.narrow_written[reef::at(word)] != 0) {
        written |= std::uint64_t{1} << worker.line_word;
      }
      worker.first.advance();
      ++worker.line_word;
    }
    if (worker.line_word == 0) {
      report_here(FindingKind::kNests, agent, "has a destination that is longer than its source");
      return true;
    }
    // Words may be read before the destination's waits permit to store them: those order the store alone.
    if (!pass(agent, worker, worker.second_gate, tile.counters, worker.second.position())) return false;
    if (!spend(1)) return false;
    agent.tick();
    if (op.transpose) {  // four words, or two, are mixed: all of them must have been written
      const int group = op.halves ? 2 : 4;
      const std::uint64_t ones = (std::uint64_t{1} << group) - 1;
      for (int i = 0; i < kLineWords; i += group) {
        if ((written >> i & ones) != ones) written &= ~(ones << i);
      }
    }
    write_line(tile, worker.second.address(), agent, written);
    written = 0;
    worker.line_word = 0;
    worker.second.advance();
    signal(agent, tile.counters[op.signal.counter], worker.second_passes.up_to(worker.second.position()));
  }
  if (!worker.first.done()) report_here(FindingKind::kNests, agent, "has a source that is longer than its destination");
  return true;
}

// Reads for the next step of a mover from wide memory. The destination's waits order what is stored, not this.
bool Walk::read_ahead(Worker& worker) {
  TileState& tile = tile_of_worker(worker);
  if (worker.has_read) return true;
  if (!pass(*worker.agent, worker, worker.first_gate, tile.counters, worker.first.position()) || !spend(1))
    return false;
  worker.agent->tick();
  worker.line_written = read_line(tile, worker.first.address(), *worker.agent, kUnpackerReads);
  worker.has_read = true;
  return true;
}

// One line for each pass of dimension 0.
bool Walk::wide_to_scaling(Worker& worker, const isa::WideToNarrow& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  while (!worker.second.done()) {
    const std::int64_t position = worker.second.position();
    if (worker.first.done()) {
      report_here(FindingKind::kNests, agent, "has a destination that is longer than its source");
      return true;
    }
    if (!read_ahead(worker)) return false;
    if (!pass(agent, worker, worker.second_gate, tile.counters, position)) return false;
    if (!spend(1)) return false;
    agent.tick();
    worker.has_read = false;
    const std::int64_t within = position % op.out.count[0];
    const std::uint64_t line = worker.line_written;
    const std::int64_t step = worker.second.address();
    if (2 * within + 2 > kLineWords) {
      report_here(FindingKind::kAddress, agent, "takes more than a line holds");
    } else if (write(*tile.scaling, step, agent)) {
      tile.scaling_written[reef::at(step)] = (line >> (2 * within) & 3) == 3 ? 1 : 0;
    }
    worker.second.advance();
    if (worker.second.position() % op.out.count[0] == 0) worker.first.advance();
    signal(agent, tile.counters[op.signal.counter], worker.second_passes.up_to(worker.second.position()));
  }
  if (!worker.first.done()) report_here(FindingKind::kNests, agent, "has a source that is longer than its destination");
  return true;
}

// Words of the line that was read last. False: they must be looked at one by one. Nothing has happened then.
bool Walk::unpack_words(TileState& tile, Worker& worker, std::int64_t words) {
  Agent& agent = *worker.agent;
  PlaceLog& log = *tile.narrow;
  const std::int64_t word = worker.second.address(), line = worker.first.address();
  if (!log.holds(word) || !log.holds(word + words - 1) || !tile.wide->holds(line)) return false;
  if (!log.knows_writes(word, words, agent) || !log.knows_reads(word, words, agent)) return false;
  if (!tile.wide->knows_writes(line, 1, agent)) return false;
  // The line is read for each of them; the first time is over.
  agent.tick(static_cast<Clock>(2 * words - 1));
  statistics_.reads += words - 1;
  statistics_.writes += words;
  tile.wide->note_reads(line, 1, agent, kUnpackerReads);
  log.note_writes(word, words, agent);
  const std::uint64_t bits = worker.line_written >> worker.line_word;
  if ((~bits & first_bits(words)) == 0) {
    std::fill_n(tile.narrow_written.begin() + word, words, std::uint8_t{1});
  } else {
    for (std::int64_t i = 0; i < words; ++i) {
      tile.narrow_written[reef::at(word + i)] = static_cast<std::uint8_t>(bits >> i & 1);
    }
  }
  worker.second.advance(words);
  worker.line_word += words - 1;
  return true;
}

bool Walk::wide_to_narrow(Worker& worker, const isa::WideToNarrow& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  // A line that is passed over must have been there. False: its waits do not permit that yet.
  const auto leave_lines = [&] {
    for (; worker.lines_to_leave > 0 && !worker.first.done(); --worker.lines_to_leave) {
      if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
      worker.first.advance();
    }
    return true;
  };
  while (!worker.second.done()) {
    const std::int64_t position = worker.second.position();
    if (op.skip_words > 0 && worker.skipped_at != position && worker.second.begins_pass(op.skip_level)) {
      worker.skipped_at = position;
      worker.line_word += op.skip_words;
      worker.lines_to_leave += worker.line_word / kLineWords;
      worker.line_word %= kLineWords;
    }
    if (!leave_lines()) return false;
    if (worker.first.done()) {
      report_here(FindingKind::kNests, agent, "has a destination that is longer than its source");
      return true;
    }
    if (!read_ahead(worker)) return false;
    if (!pass(agent, worker, worker.second_gate, tile.counters, position)) return false;
    std::int64_t words = 1;
    if (op.line_level > 0 && (op.skip_words == 0 || op.skip_level > 0)) {
      words = words_together(op.out, worker.second, worker.second_gate, worker.line_word);
      if (worker.second_passes.next != kNever) words = std::min(words, worker.second_passes.next - position);
    }
    worker.has_read = false;
    if (words > 1 && unpack_words(tile, worker, words)) {
      if (!spend(2 * words - 1)) return false;
    } else {
      if (!spend(1)) return false;
      agent.tick();
      const std::uint64_t line = worker.line_written;
      write_word(tile, worker.second.address(), agent, (line >> worker.line_word & 1) != 0);
      worker.second.advance();
    }
    if (++worker.line_word == kLineWords || worker.second.begins_pass(op.line_level)) {
      worker.line_word = 0;
      ++worker.lines_to_leave;
    }
    signal(agent, tile.counters[op.signal.counter], worker.second_passes.up_to(worker.second.position()));
  }
  if (!leave_lines()) return false;
  if (!worker.first.done()) report_here(FindingKind::kNests, agent, "has a source that is longer than its destination");
  return true;
}

}  // namespace reef::audit
