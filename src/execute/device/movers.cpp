// SPDX-License-Identifier: Apache-2.0
// The units of a tile that move data: ring, narrow to wide, wide to narrow and scaling, mesh.
#include <algorithm>

#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

// 4x4 bytes of every four words.
void transpose_bytes(std::array<std::uint8_t, kLineBytes>& line) {
  const auto in = line;
  for (std::size_t group = 0; group < kLineBytes; group += 16) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) line[group + 4 * i + j] = in[group + 4 * j + i];
    }
  }
}

// 2x2 halves of every two words.
void transpose_halves(std::array<std::uint8_t, kLineBytes>& line) {
  for (std::size_t group = 0; group < kLineBytes; group += 8) {
    std::swap(line[group + 2], line[group + 4]);
    std::swap(line[group + 3], line[group + 5]);
  }
}

int unit_number(const Tile& tile, const Unit& unit) { return static_cast<int>(&unit - tile.units.data()); }
int mesh_unit(chip::Direction direction) {
  return static_cast<int>(isa::Unit::kMeshSouth) + static_cast<int>(direction);
}

}  // namespace

bool Chip::store_line(Tile& tile, std::int64_t address, const Line& line) {
  if (!WideMemory::holds(address))
    return fail(fmt::format("writes line {} of wide memory, which has {}", address, chip::kWideLines));
  tile.wide.set_line(address, line);
  return true;
}

const Line* Chip::load_line(Tile& tile, std::int64_t address) {
  if (WideMemory::holds(address)) return &tile.wide.line(address);
  fail(fmt::format("reads line {} of wide memory, which has {}", address, chip::kWideLines));
  return nullptr;
}

bool Chip::ring_has_room(std::uint16_t tiles, int channel, bool to_scalar) const {
  for (const auto& tile : tiles_) {
    const bool is_meant = (tiles >> tile->number & 1) != 0;
    if (is_meant && tile->ring[static_cast<std::size_t>(channel)].size() >= depths_.ring_lines) return false;
  }
  return !to_scalar || to_scalar_.size() < depths_.ring_lines;
}

void Chip::send_line(std::uint16_t tiles, int channel, bool to_scalar, SharedLine line) {
  for (auto& tile : tiles_) {
    if ((tiles >> tile->number & 1) == 0) continue;
    tile->ring[static_cast<std::size_t>(channel)].push_back(line);
    ++tile->version;
  }
  if (to_scalar) to_scalar_.push_back(std::move(line));
}

bool Chip::ring_send(Tile& tile, Unit& unit, const isa::RingSend& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.in);  // it has one nest
  const std::int64_t from = run.first.position();
  const std::int64_t end = permitted_end(op.in, op.waits, tile.counters, from);
  if (end <= from) return false;
  while (!run.first.done() && run.first.position() < end) {
    if (!ring_has_room(op.to_tiles, op.channel, op.to_scalar)) break;
    const std::int64_t address = run.first.address(), position = run.first.position();
    const Line* line = load_line(tile, address);
    if (line == nullptr) return false;
    send_line(op.to_tiles, op.channel, op.to_scalar, std::make_shared<Line>(*line));
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
  count_ring(op.channel, signalled(op.ring_producer, op.in, from, to));
  if (run.first.done()) finish(tile, unit, &op.in, nullptr);
  return to > from;
}

bool Chip::ring_receive(Tile& tile, Unit& unit, const isa::RingReceive& op) {
  Running& run = *unit.running;
  auto& lines = tile.ring[static_cast<std::size_t>(op.channel)];
  const bool was_full = lines.size() >= depths_.ring_lines;  // senders wait for it
  start(unit, op.out, op.out);                            // it has one nest
  const std::int64_t from = run.first.position();
  const std::int64_t end = permitted_end(op.out, op.waits, tile.counters, from);
  bool moved = false;
  const auto tell = [&](MoveKind kind, std::int64_t address, std::int64_t position) {
    if (observer_ == nullptr) return;
    observer_->moved({.kind = kind,
                      .tile = &tile,
                      .unit = unit_number(tile, unit),
                      .run = &run,
                      .target = address,
                      .from = position,
                      .to = run.first.position()});
  };
  while (!run.first.done() && run.first.position() < end && !lines.empty()) {
    if (op.has_header && !run.header_done && run.first.begins_pass(op.header_level)) {
      const std::int64_t pass = op.out.passes_before(run.first.position(), op.header_level);
      const std::int64_t address =
          op.header_first + op.header_step * (pass % op.header_buffers) + run.header_line;
      if (!store_line(tile, address, *lines.front())) return false;
      lines.pop_front();
      tell(MoveKind::kHeaderReceived, address, run.first.position());
      run.header_done = ++run.header_line >= op.header_lines;
      if (run.header_done) run.header_line = 0;
      moved = true;
      continue;
    }
    const std::int64_t address = run.first.address(), position = run.first.position();
    if (!store_line(tile, address, *lines.front())) return false;
    lines.pop_front();
    run.first.advance();
    tell(MoveKind::kLineReceived, address, position);
    run.header_done = false;
    moved = true;
  }
  const std::int64_t to = run.first.position();
  if (!spend(to - from)) return false;
  count(tile, op.read, signalled(op.read, op.out, from, to));
  if (was_full && moved) touch_all();
  if (run.first.done()) {
    finish(tile, unit, &op.out, nullptr);
  }
  return moved;
}

// The words from where the source nest stands up to a position.
void Chip::tell_packed(const Tile& tile, const Running& run, std::int64_t base, std::int64_t end) {
  isa::NestCursor words = run.first;
  while (!words.done() && words.position() < end) {
    const std::int64_t address = words.address() + base, position = words.position();
    words.advance();
    observer_->moved({.kind = MoveKind::kWordPacked,
                      .tile = &tile,
                      .unit = static_cast<int>(isa::Unit::kNarrowToWide),
                      .run = &run,
                      .source = address,
                      .from = position,
                      .to = words.position()});
  }
}

bool Chip::narrow_to_wide(Tile& tile, Unit& unit, const isa::NarrowToWide& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  // The register holds the whole address, not a distance.
  const std::int64_t base = op.base_register < 0 ? 0 : std::int64_t{run.register_base} - op.in.base;
  bool moved = false;
  while (!run.second.done()) {
    const std::int64_t from_line = run.second.position(), from_word = run.first.position();
    if (permitted_end(op.out, op.out_waits, tile.counters, from_line) <= from_line) break;
    // A line must be readable as a whole.
    isa::NestCursor words = run.first;
    Line line{};
    int filled = 0;
    const std::int64_t readable = permitted_end(op.in, op.in_waits, tile.counters, from_word);
    bool is_held = false;
    while (!words.done() && filled < kLineWords && (filled == 0 || !words.begins_pass(op.line_level))) {
      if (words.position() >= readable) {
        is_held = true;
        break;
      }
      const std::int64_t address = words.address() + base;
      if (!NarrowMemory::holds_word(address)) return fail(fmt::format("reads word {} of narrow memory", address));
      const Word word = tile.narrow.word(address);
      std::memcpy(line.bytes.data() + 4 * filled, &word.value, 4);
      std::memcpy(line.known.data() + 4 * filled++, &word.known, 4);
      words.advance();
    }
    if (is_held) break;
    if (observer_ != nullptr) tell_packed(tile, run, base, words.position());
    run.first = words;
    if (op.transpose) {
      const auto transpose = op.halves ? transpose_halves : transpose_bytes;
      transpose(line.bytes);
      transpose(line.known);
    }
    const std::int64_t address = run.second.address();
    if (!store_line(tile, address, line) || !spend(filled + 1)) return false;
    run.second.advance();
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kLineStored,
                        .tile = &tile,
                        .unit = unit_number(tile, unit),
                        .run = &run,
                        .target = address,
                        .from = from_line,
                        .to = run.second.position()});
    }
    count(tile, op.signal, signalled(op.signal, op.out, from_line, run.second.position()));
    moved = true;
  }
  if (run.second.done()) {
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

bool Chip::wide_to_scaling(Tile& tile, Unit& unit, const isa::WideToNarrow& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  const std::int64_t from = run.second.position();
  const std::int64_t line_end = permitted_end(op.in, op.in_waits, tile.counters, run.first.position());
  const std::int64_t end = permitted_end(op.out, op.out_waits, tile.counters, from);
  bool moved = false;
  while (!run.second.done() && run.second.position() < end && run.first.position() < line_end) {
    const std::int64_t step_position = run.second.position();
    // One line for each pass of dimension 0.
    const std::int64_t within = step_position % op.out.count[0];
    const std::int64_t line_address = run.first.address(), line_position = run.first.position();
    const Line* line = load_line(tile, line_address);
    if (line == nullptr) return false;
    if (!ScalingMemory::holds(run.second.address()) || 8 * within + 8 > kLineBytes) {
      return fail(fmt::format("writes step {} of scaling memory", run.second.address()));
    }
    tile.scaling.set_step(run.second.address(), line->bytes.data() + 8 * within, line->known.data() + 8 * within);
    const std::int64_t step_address = run.second.address();
    run.second.advance();
    if (run.second.position() % op.out.count[0] == 0) run.first.advance();
    moved = true;
    if (observer_ != nullptr) {
      observer_->moved({MoveKind::kScalingLoaded, &tile, unit_number(tile, unit), &run, line_address, step_address,
                        step_position, run.second.position(), line_position, static_cast<int>(within)});
    }
  }
  const std::int64_t to = run.second.position();
  if (!spend(to - from)) return false;
  count(tile, op.signal, signalled(op.signal, op.out, from, to));
  if (run.second.done()) {
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

bool Chip::wide_to_narrow(Tile& tile, Unit& unit, const isa::WideToNarrow& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  const std::int64_t from = run.second.position();
  const std::int64_t end = permitted_end(op.out, op.out_waits, tile.counters, from);
  const std::int64_t line_end = permitted_end(op.in, op.in_waits, tile.counters, run.first.position());
  bool moved = false;
  // A line that is passed over must have been there.
  const auto leave_lines = [&] {
    for (; run.lines_to_leave > 0 && !run.first.done() && run.first.position() < line_end; --run.lines_to_leave) {
      run.first.advance();
      moved = true;
    }
  };
  while (!run.second.done() && run.second.position() < end) {
    const std::int64_t position = run.second.position();
    if (op.skip_words > 0 && run.skipped_at != position && run.second.begins_pass(op.skip_level)) {
      run.line_word += op.skip_words;
      run.skipped_at = position;
      while (run.line_word >= kLineWords) {
        run.line_word -= kLineWords;
        ++run.lines_to_leave;
      }
    }
    leave_lines();
    if (run.lines_to_leave > 0 || run.first.position() >= line_end) break;
    const std::int64_t line_address = run.first.address(), address = run.second.address();
    const Line* line = load_line(tile, line_address);
    if (line == nullptr) return false;
    if (!NarrowMemory::holds_word(address)) return fail(fmt::format("writes word {} of narrow memory", address));
    Word word;
    std::memcpy(&word.value, line->bytes.data() + 4 * run.line_word, 4);
    std::memcpy(&word.known, line->known.data() + 4 * run.line_word, 4);
    tile.narrow.set_word(address, word);
    run.second.advance();
    moved = true;
    if (observer_ != nullptr) {
      observer_->moved({MoveKind::kWordUnpacked, &tile, unit_number(tile, unit), &run, line_address, address, position,
                        run.second.position(), run.first.position(), static_cast<int>(run.line_word)});
    }
    if (++run.line_word == kLineWords || run.second.begins_pass(op.line_level)) {
      run.line_word = 0;
      ++run.lines_to_leave;
    }
  }
  leave_lines();
  const std::int64_t to = run.second.position();
  if (!spend(to - from)) return false;
  count(tile, op.signal, signalled(op.signal, op.out, from, to));
  if (run.second.done()) {
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

bool Chip::mesh_send(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction) {
  const std::int64_t from = run.first.position();
  const std::int64_t end = permitted_end(op.in, op.in_waits, tile.counters, from);
  const int to_tile = chip::neighbour(tile.number, direction);
  Tile* receiver = to_tile >= 0 ? tiles_[static_cast<std::size_t>(to_tile)].get() : nullptr;
  while (!run.first.done() && run.first.position() < end) {
    const std::int64_t address = run.first.address();
    if (!NarrowMemory::holds_word(address)) return fail(fmt::format("reads word {} of narrow memory", address));
    if (receiver != nullptr) {
      auto& link = receiver->links[static_cast<std::size_t>(direction)];
      if (link.size() >= depths_.mesh_words) break;
      link.push_back(tile.narrow.word(address));
    }
    const std::int64_t position = run.first.position();
    run.first.advance();
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kWordSent,
                        .tile = &tile,
                        .unit = mesh_unit(direction),
                        .run = &run,
                        .source = address,
                        .from = position,
                        .to = run.first.position()});
    }
  }
  const std::int64_t to = run.first.position();
  if (to == from || !spend(to - from)) return false;
  if (receiver != nullptr) ++receiver->version;
  count(tile, op.sent, signalled(op.sent, op.in, from, to));
  return true;
}

bool Chip::mesh_receive(Tile& tile, Running& run, const isa::Mesh& op, chip::Direction direction) {
  auto& link = tile.links[static_cast<std::size_t>(direction)];
  const bool was_full = link.size() >= depths_.mesh_words;  // the sender waits for it
  const std::int64_t from = run.second.position();
  const std::int64_t end = permitted_end(op.out, op.out_waits, tile.counters, from);
  while (!run.second.done() && run.second.position() < end && (op.fills || !link.empty())) {
    const std::int64_t address = run.second.address();
    if (!NarrowMemory::holds_word(address)) return fail(fmt::format("writes word {} of narrow memory", address));
    tile.narrow.set_word(address, op.fills ? Word{op.fill_value, kAllKnown} : link.front());
    if (!op.fills) link.pop_front();
    const std::int64_t position = run.second.position();
    run.second.advance();
    if (observer_ != nullptr) {
      observer_->moved({.kind = MoveKind::kWordReceived,
                        .tile = &tile,
                        .unit = mesh_unit(direction),
                        .run = &run,
                        .target = address,
                        .from = position,
                        .to = run.second.position()});
    }
  }
  const std::int64_t to = run.second.position();
  if (to == from || !spend(to - from)) return false;
  count(tile, op.received, signalled(op.received, op.out, from, to));
  if (was_full) touch_all();
  return true;
}

bool Chip::mesh(Tile& tile, Unit& unit, const isa::Mesh& op, chip::Direction direction) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  bool moved = op.sends && mesh_send(tile, run, op, direction);
  if (failure_.ok() && op.receives && mesh_receive(tile, run, op, direction)) moved = true;
  const bool is_done = (!op.sends || run.first.done()) && (!op.receives || run.second.done());
  if (!failure_.ok() || !is_done) return moved;
  finish(tile, unit, op.sends ? &op.in : nullptr, op.receives ? &op.out : nullptr);
  return true;
}

}  // namespace reef::device
