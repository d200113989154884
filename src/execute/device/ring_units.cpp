// SPDX-License-Identifier: Apache-2.0
// The units of a tile that send lines over the ring and take them from it.
#include <algorithm>
#include <bit>

#include "execute/device/bulk_moves.h"
#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {

std::size_t Chip::ring_room(std::uint16_t tiles, int channel, bool to_scalar) const {
  std::size_t most = to_scalar ? to_scalar_.size() : 0;
  for (std::uint32_t left = tiles; left != 0; left &= left - 1) {
    const Tile& tile = *tiles_[at(std::countr_zero(left))];
    most = std::max(most, tile.ring[at(channel)].size());
  }
  return most < depths_.ring_lines ? depths_.ring_lines - most : 0;
}

Line& Chip::new_ring_line(std::uint16_t tiles, int channel, bool to_scalar) {
  const int receivers = std::popcount(tiles) + (to_scalar ? 1 : 0);
  if (receivers == 0) return unreceived_line_;
  RingLine* line = ring_lines_.take(receivers);
  for (std::uint32_t left = tiles; left != 0; left &= left - 1) {
    Tile& tile = *tiles_[at(std::countr_zero(left))];
    tile.ring[at(channel)].push_back(line);
    ++tile.version;
  }
  if (to_scalar) to_scalar_.push_back(line);
  return line->line;
}

bool Chip::ring_send(Tile& tile, Unit& unit, const isa::RingSend& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.in);  // it has one nest
  const std::int64_t from = run.first.position();
  const std::int64_t end = affordable(from, permitted_end(op.in, op.waits, tile.counters, from, comparison_));
  if (end <= from) return false;
  for (std::size_t room = ring_room(op.to_tiles, op.channel, op.to_scalar);
       room > 0 && !run.first.done() && run.first.position() < end; --room) {
    const std::int64_t address = run.first.address(), position = run.first.position();
    const Line* line = load_line(tile, address);
    if (line == nullptr) return false;
    new_ring_line(op.to_tiles, op.channel, op.to_scalar) = *line;
    run.first.advance();
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kLineSent,
                        .tile = &tile,
                        .unit = static_cast<int>(isa::Unit::kRingSend),
                        .run = &run,
                        .source = address,
                        .from = position,
                        .to = run.first.position()});
    }
  }
  const std::int64_t to = run.first.position();
  if (!spend(to - from)) return false;
  count(tile, op.ring_write, signalled(op.ring_write, op.in, from, to));
  count_ring(&tile, op.channel, signalled(op.ring_producer, op.in, from, to));
  if (run.first.done()) finish(tile, unit, &op.in, nullptr);
  return to > from;
}

bool Chip::receive_line(Tile& tile, MessageQueue<RingLine*>& lines, std::int64_t address) {
  if (!store_line(tile, address, lines.front()->line)) return false;
  ring_lines_.leave(lines.front());
  lines.pop_front();
  return true;
}

bool Chip::ring_receive(Tile& tile, Unit& unit, const isa::RingReceive& op) {
  Running& run = *unit.running;
  auto& lines = tile.ring[at(op.channel)];
  const bool was_full = lines.size() >= depths_.ring_lines;  // senders wait for it
  start(unit, op.out, op.out);                               // it has one nest
  if (lines.empty() && !run.first.done()) return false;
  const std::int64_t from = run.first.position();
  const std::int64_t end = affordable(from, permitted_end(op.out, op.waits, tile.counters, from, comparison_));
  bool moved = false;
  const auto tell = [&](MoveKind kind, std::int64_t address, std::int64_t position) {
    if (observer_ == nullptr) return;
    observer_->moved({.kind = kind,
                      .tile = &tile,
                      .unit = static_cast<int>(&unit - tile.units.data()),
                      .run = &run,
                      .target = address,
                      .from = position,
                      .to = run.first.position()});
  };
  while (!run.first.done() && run.first.position() < end && !lines.empty()) {
    if (op.has_header && !run.header_done && run.first.begins_pass(op.header_level)) {
      const std::int64_t pass = op.out.passes_before(run.first.position(), op.header_level) + unit.phases.header;
      const std::int64_t address = op.header_first + op.header_step * (pass % op.header_buffers) + run.header_line;
      if (!receive_line(tile, lines, address)) return false;
      tell(MoveKind::kHeaderReceived, address, run.first.position());
      run.header_done = ++run.header_line >= op.header_lines;
      if (run.header_done) run.header_line = 0;
      moved = true;
      if (options_.takes_line_by_line) break;
      continue;
    }
    const std::int64_t address = run.first.address(), position = run.first.position();
    std::int64_t count = 1;
    if (observer_ == nullptr && !(op.has_header && op.header_level == 0) && !options_.takes_line_by_line) {
      count = std::min(equal_steps(run.first, op.out, end), static_cast<std::int64_t>(lines.size()));
      count = steps_inside(address, op.out.stride[0], count, chip::kWideLines);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (!receive_line(tile, lines, address + i * static_cast<std::int64_t>(op.out.stride[0]))) return false;
    }
    run.first.advance(count);
    tell(MoveKind::kLineReceived, address, position);
    run.header_done = false;
    moved = true;
    if (options_.takes_line_by_line) break;
  }
  const std::int64_t to = run.first.position();
  if (!spend(to - from)) return false;
  count(tile, op.read, signalled(op.read, op.out, from, to));
  if (was_full && moved) touch_all();
  if (run.first.done()) {
    if (doubts(Belief::kHeaderRestarts)) unit.phases.header += op.out.passes(op.header_level);
    finish(tile, unit, &op.out, nullptr);
  }
  return moved;
}

}  // namespace reef::device
