// SPDX-License-Identifier: Apache-2.0
// Units that move bytes inside the chip: ring, narrow to wide, wide to narrow, mesh.
#include <algorithm>

#include "retarget/machine.h"

namespace reef::retarget {

namespace {

// More than the largest network has on its way at any time; keeps foreign programs from filling the memory.
constexpr std::int64_t kMaxLinesInFlight = std::int64_t{1} << 17;
constexpr std::int64_t kMaxWordsInFlight = std::int64_t{1} << 22;

Status check_line(std::int64_t line) {
  REEF_REQUIRE(line >= 0 && line < kWideLines, "wide line {} does not exist", line);
  return ok_status();
}
Status check_word(std::int64_t word) {
  REEF_REQUIRE(word >= 0 && word < kNarrowBytes / 4, "narrow word {} does not exist", word);
  return ok_status();
}

// Bytes of a line as the mover stores them: 4x4 bytes, or 2x2 halves, transposed.
void transpose_line(Line& line, bool halves) {
  const Line before = line;
  const std::size_t words = halves ? 2 : 4;
  const std::size_t part = halves ? 2 : 1;  // bytes that stay together
  const std::size_t block = words * 4;
  for (std::size_t start = 0; start < line.size(); start += block) {
    for (std::size_t word = 0; word < words; ++word) {
      for (std::size_t k = 0; k < 4 / part; ++k) {
        for (std::size_t b = 0; b < part; ++b) {
          line[start + k * 4 + word * part + b] = before[start + word * 4 + k * part + b];
        }
      }
    }
  }
}

}  // namespace

Status Machine::store_line(Tile& tile, std::int64_t line, std::span<const Tag> tags) {
  REEF_RETURN_IF_ERROR(check_line(line));
  std::copy(tags.begin(), tags.end(), tile.wide.begin() + line * kLineBytes);
  ++tile.line_version[static_cast<std::size_t>(line)];
  return ok_status();
}

Result<std::shared_ptr<Line>> Machine::new_line() {
  if (*lines_alive_ >= kMaxLinesInFlight) {
    return make_error(StatusCode::kResourceExhausted, "more than {} ring lines are sent and not received",
                      kMaxLinesInFlight);
  }
  ++*lines_alive_;
  return std::shared_ptr<Line>(new Line(), [alive = lines_alive_](Line* line) {
    --*alive;
    delete line;
  });
}

void Machine::send_line(std::uint16_t tiles, int channel, bool to_scalar, SharedLine line) {
  for (int t = 0; t < kTiles; ++t) {
    if ((tiles >> t & 1) != 0)
      tiles_[static_cast<std::size_t>(t)]->ring[static_cast<std::size_t>(channel)].push_back(line);
  }
  if (to_scalar) outgoing_.push_back(std::move(line));
}

Result<bool> Machine::run_ring_send(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::RingSend>(running.code->code);
  if (!running.started) {
    running.a = isa::NestCursor(code.in, unit.phase.a);
    running.started = true;
  }
  bool moved = false;
  while (!running.a.done()) {
    if (!may_step(code.waits, running.a, tile.counters)) return moved;
    REEF_RETURN_IF_ERROR(check_line(running.a.address()));
    REEF_ASSIGN_OR_RETURN(const std::shared_ptr<Line> line, new_line());
    std::copy_n(tile.wide.begin() + running.a.address() * kLineBytes, kLineBytes, line->begin());
    send_line(code.to_tiles, code.channel, code.to_scalar, line);
    running.a.advance();
    count(tile, code.ring_write, running.a);
    if (code.ring_producer.enabled) count_ring(code.channel, running.a.ended(code.ring_producer.level));
    moved = true;
    if (!spend(1)) return moved;
  }
  unit.phase.a += running.a.buffer_passes();
  unit.running.reset();
  return true;
}

Result<bool> Machine::run_ring_receive(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::RingReceive>(running.code->code);
  if (!running.started) {
    running.a = isa::NestCursor(code.out, unit.phase.a);
    running.started = true;
  }
  auto& ring = tile.ring[static_cast<std::size_t>(code.channel)];
  bool moved = false;
  while (!running.a.done()) {
    if (!may_step(code.waits, running.a, tile.counters) || ring.empty()) return moved;
    if (code.has_header && !running.header_done && running.a.begins_pass(code.header_level)) {
      if (static_cast<std::int64_t>(ring.size()) < code.header_lines) return moved;
      const std::int64_t buffer = running.a.pass(code.header_level) % code.header_buffers;
      for (std::int64_t k = 0; k < code.header_lines; ++k) {
        REEF_RETURN_IF_ERROR(store_line(tile, code.header_first + code.header_step * buffer + k, *ring.front()));
        ring.pop_front();
      }
      running.header_done = moved = true;
      if (!spend(code.header_lines)) return moved;
      continue;
    }
    REEF_RETURN_IF_ERROR(store_line(tile, running.a.address(), *ring.front()));
    ring.pop_front();
    running.header_done = false;
    running.a.advance();
    count(tile, code.read, running.a);
    moved = true;
    if (!spend(1)) return moved;
  }
  unit.phase.a += running.a.buffer_passes();
  unit.running.reset();
  return true;
}

Result<bool> Machine::run_to_wide(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::NarrowToWide>(running.code->code);
  if (!running.started) {
    running.a = isa::NestCursor(code.in, unit.phase.a);
    running.b = isa::NestCursor(code.out, unit.phase.b);
    running.started = true;
  }
  bool moved = false;
  while (true) {
    if (running.line_is_full) {
      REEF_REQUIRE(!running.b.done(), "more lines are filled than stored");
      if (!may_step(code.out_waits, running.b, tile.counters)) return moved;
      if (code.transpose) transpose_line(running.line, code.halves);
      REEF_RETURN_IF_ERROR(store_line(tile, running.b.address(), running.line));
      running.b.advance();
      count(tile, code.signal, running.b);
      running.line_is_full = false;
      running.line_word = 0;
      running.line.fill(0);
      moved = true;
    }
    if (running.a.done()) break;
    if (!may_step(code.in_waits, running.a, tile.counters)) return moved;
    REEF_RETURN_IF_ERROR(check_word(running.a.address()));
    std::copy_n(tile.narrow.begin() + 4 * running.a.address(), 4, running.line.begin() + 4 * running.line_word);
    ++running.line_word;
    running.a.advance();
    running.line_is_full = running.line_word == kLineWords || running.a.ended(code.line_level) != 0;
    moved = true;
    if (!spend(1)) return moved;
  }
  REEF_REQUIRE(running.b.done(), "fewer lines are filled than stored");
  unit.phase.a += running.a.buffer_passes();
  unit.phase.b += running.b.buffer_passes();
  unit.running.reset();
  return true;
}

Result<bool> Machine::run_to_narrow(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::WideToNarrow>(running.code->code);
  if (!running.started) {
    running.a = isa::NestCursor(code.in, unit.phase.a);
    running.b = isa::NestCursor(code.out, unit.phase.b);
    running.started = true;
  }
  if (code.to_scaling) return run_to_scaling(tile, unit);
  bool moved = false;
  while (!running.b.done()) {
    if (!running.position_known) {
      // Where in which line the next word lies. Skipped words precede a pass and belong to its line.
      if (running.b.begins_pass(code.line_level)) {
        running.lines_to_leave = running.b.position() > 0 ? 1 : 0;
        running.line_word = running.lines_of_pass = 0;
      }
      if (code.skip_words > 0 && running.b.begins_pass(code.skip_level)) running.line_word += code.skip_words;
      running.lines_to_leave += running.line_word / kLineWords - running.lines_of_pass;
      running.lines_of_pass = running.line_word / kLineWords;
      running.position_known = true;
    }
    for (; running.lines_to_leave > 0; --running.lines_to_leave) {
      if (!may_step(code.in_waits, running.a, tile.counters)) return moved;
      running.a.advance();
      REEF_REQUIRE(!running.a.done(), "more lines are read than there are");
      moved = true;
    }
    if (!may_step(code.in_waits, running.a, tile.counters)) return moved;
    if (!may_step(code.out_waits, running.b, tile.counters)) return moved;
    REEF_RETURN_IF_ERROR(check_line(running.a.address()));
    REEF_RETURN_IF_ERROR(check_word(running.b.address()));
    std::copy_n(tile.wide.begin() + running.a.address() * kLineBytes + 4 * (running.line_word % kLineWords), 4,
                tile.narrow.begin() + 4 * running.b.address());
    ++running.line_word;
    running.position_known = false;
    running.b.advance();
    count(tile, code.signal, running.b);
    moved = true;
    if (!spend(1)) return moved;
  }
  running.a.advance();
  REEF_REQUIRE(running.a.done(), "fewer lines are read than there are");
  unit.phase.a += running.a.buffer_passes();
  unit.phase.b += running.b.buffer_passes();
  unit.running.reset();
  return true;
}

// Eight bytes per step; each line serves as many steps as the innermost dimension has.
Result<bool> Machine::run_to_scaling(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::WideToNarrow>(running.code->code);
  const std::int64_t steps_per_line = code.out.count[0];
  bool moved = false;
  while (!running.b.done()) {
    REEF_REQUIRE(!running.a.done(), "more lines are read than there are");
    if (!may_step(code.in_waits, running.a, tile.counters)) return moved;
    if (!may_step(code.out_waits, running.b, tile.counters)) return moved;
    const std::int64_t part = running.b.position() % steps_per_line;
    const std::int64_t to = running.b.address() * 8;
    REEF_RETURN_IF_ERROR(check_line(running.a.address()));
    REEF_REQUIRE(part < kLineBytes / 8 && to >= 0 && to + 8 <= kScalingBytes, "scaling memory has no byte {}", to);
    std::copy_n(tile.wide.begin() + running.a.address() * kLineBytes + part * 8, 8, tile.scaling.begin() + to);
    running.b.advance();
    if (running.b.position() % steps_per_line == 0) running.a.advance();
    count(tile, code.signal, running.b);
    moved = true;
    if (!spend(1)) return moved;
  }
  unit.phase.a += running.a.buffer_passes();
  unit.phase.b += running.b.buffer_passes();
  unit.running.reset();
  return true;
}

Result<bool> Machine::mesh_send(Tile& tile, Running& running, int direction) {
  const auto& code = std::get<isa::Mesh>(running.code->code);
  const int to = chip::neighbour(tile.number, static_cast<chip::Direction>(direction));
  bool moved = false;
  while (!running.a.done() && may_step(code.in_waits, running.a, tile.counters)) {
    const std::int64_t word = running.a.address();
    REEF_RETURN_IF_ERROR(check_word(word));
    if (to >= 0) {
      Word tags;
      std::copy_n(tile.narrow.begin() + 4 * word, 4, tags.begin());
      tiles_[static_cast<std::size_t>(to)]->links[static_cast<std::size_t>(direction)].push_back(tags);
      if (++words_in_flight_ > kMaxWordsInFlight) {
        return make_error(StatusCode::kResourceExhausted, "more than {} words are sent and never received",
                          kMaxWordsInFlight);
      }
    }
    running.a.advance();
    count(tile, code.sent, running.a);
    moved = true;
    if (!spend(1)) return moved;
  }
  return moved;
}

Result<bool> Machine::mesh_receive(Tile& tile, Running& running, int direction) {
  const auto& code = std::get<isa::Mesh>(running.code->code);
  auto& link = tile.links[static_cast<std::size_t>(direction)];
  bool moved = false;
  while (!running.b.done() && may_step(code.out_waits, running.b, tile.counters)) {
    if (!code.fills && link.empty()) return moved;
    const std::int64_t word = running.b.address();
    REEF_RETURN_IF_ERROR(check_word(word));
    if (code.fills) {
      std::fill_n(tile.narrow.begin() + 4 * word, 4, make_tag(Origin::kFill, running.instruction));
    } else {
      std::copy_n(link.front().begin(), 4, tile.narrow.begin() + 4 * word);
      link.pop_front();
      --words_in_flight_;
    }
    running.b.advance();
    count(tile, code.received, running.b);
    moved = true;
    if (!spend(1)) return moved;
  }
  return moved;
}

Result<bool> Machine::run_mesh(Tile& tile, Unit& unit, int direction) {
  Running& running = *unit.running;
  const auto& code = std::get<isa::Mesh>(running.code->code);
  if (!running.started) {
    running.a = isa::NestCursor(code.in, unit.phase.a);
    running.b = isa::NestCursor(code.out, unit.phase.b);
    running.started = true;
  }
  bool moved = false;
  if (code.sends) {
    REEF_ASSIGN_OR_RETURN(moved, mesh_send(tile, running, direction));
  }
  if (code.receives) {
    REEF_ASSIGN_OR_RETURN(const bool received, mesh_receive(tile, running, direction));
    moved = moved || received;
  }
  if ((code.sends && !running.a.done()) || (code.receives && !running.b.done())) return moved;
  if (code.sends) unit.phase.a += running.a.buffer_passes();
  if (code.receives) unit.phase.b += running.b.buffer_passes();
  unit.running.reset();
  return true;
}

}  // namespace reef::retarget
