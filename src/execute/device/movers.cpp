// SPDX-License-Identifier: Apache-2.0
// The units of a tile that move data between its memories: narrow to wide, wide to narrow, wide to scaling.
#include <algorithm>

#include "execute/device/bulk_moves.h"
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

// Words of a line to narrow memory.
void unpack_words(const Line& line, std::int64_t first, std::int64_t words, std::int64_t address, std::int64_t stride,
                  NarrowMemory& narrow) {
  const std::uint8_t* bytes = line.bytes.data() + 4 * first;
  if (stride == 1 && 4 * (first + words) <= line.known_prefix()) {
    narrow.set_bytes(4 * address, bytes, static_cast<std::size_t>(4 * words));
    return;
  }
  for (std::int64_t i = 0; i < words; ++i) {
    Word word;
    std::memcpy(&word.value, bytes + 4 * i, 4);
    std::array<std::uint8_t, 4> known;
    line.copy_known(static_cast<int>(4 * (first + i)), 4, known.data());
    std::memcpy(&word.known, known.data(), 4);
    narrow.set_word(address + i * stride, word);
  }
}

int unit_number(const Tile& tile, const Unit& unit) { return static_cast<int>(&unit - tile.units.data()); }

}  // namespace

bool Chip::store_line(Tile& tile, std::int64_t address, const Line& line) {
  if (!WideMemory::holds(address))
    return fail(fmt::format("writes line {} of wide memory, which has {}", address, chip::kWideLines));
  tile.wide.line(address) = line;
  return true;
}

const Line* Chip::load_line(Tile& tile, std::int64_t address) {
  if (WideMemory::holds(address)) return &tile.wide.line(address);
  fail(fmt::format("reads line {} of wide memory, which has {}", address, chip::kWideLines));
  return nullptr;
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

Chip::Packing Chip::pack_line(const Tile& tile, const isa::NarrowToWide& op, std::int64_t base, std::int64_t readable,
                              isa::NestCursor& words, Line& line) {
  Line::Flags known{};
  int filled = 0;
  while (!words.done() && filled < kLineWords && (filled == 0 || !words.begins_pass(op.line_level))) {
    if (words.position() >= readable) return {filled, true};
    const std::int64_t address = words.address() + base;
    if (!NarrowMemory::holds_word(address)) {
      fail(fmt::format("reads word {} of narrow memory", address));
      return {filled, true};
    }
    // Lines end between words of dimension 0 only if every word begins a line.
    const std::int64_t most = op.line_level == 0 ? 1 : std::min(readable, words.position() + kLineWords - filled);
    const std::int64_t count = op.line_level == 0 ? 1 : equal_steps(words, op.in, most);
    const std::int64_t inside = steps_inside(address, op.in.stride[0], count, kNarrowWords);
    const auto stride = static_cast<std::int64_t>(op.in.stride[0]);
    for (std::int64_t i = 0; i < inside; ++i) {
      const Word word = tile.narrow.word(address + i * stride);
      std::memcpy(line.bytes.data() + 4 * filled, &word.value, 4);
      std::memcpy(known.data() + 4 * filled++, &word.known, 4);
    }
    words.advance(inside);
  }
  if (op.transpose) {
    const auto transpose = op.halves ? transpose_halves : transpose_bytes;
    transpose(line.bytes);
    transpose(known);
  }
  line.set_known(known);
  return {filled, false};
}

bool Chip::narrow_to_wide(Tile& tile, Unit& unit, const isa::NarrowToWide& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  // The register holds the whole address, not a distance.
  const std::int64_t replaced = doubts(Belief::kRegisterReplaces) ? 0 : op.in.base;
  const std::int64_t base = op.base_register < 0 ? 0 : std::int64_t{run.register_base} - replaced;
  bool moved = false;
  while (!run.second.done()) {
    const std::int64_t from_line = run.second.position(), from_word = run.first.position();
    if (permitted_end(op.out, op.out_waits, tile.counters, from_line, comparison_) <= from_line) break;
    // A line must be readable as a whole.
    isa::NestCursor words = run.first;
    Line line;
    const std::int64_t readable = permitted_end(op.in, op.in_waits, tile.counters, from_word, comparison_);
    const Packing packing = pack_line(tile, op, base, readable, words, line);
    if (!failure_.ok()) return false;
    if (packing.is_held) break;
    if (packing.words == 0) return fail("its source is complete, its destination is not");
    if (observer_ != nullptr) tell_packed(tile, run, base, words.position());
    run.first = words;
    const std::int64_t address = run.second.address();
    if (!store_line(tile, address, line) || !spend(packing.words + 1)) return false;
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
    if (!run.first.done()) return fail("its destination is complete, its source is not");
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

bool Chip::wide_to_scaling(Tile& tile, Unit& unit, const isa::WideToNarrow& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  const std::int64_t from = run.second.position();
  const std::int64_t line_end = permitted_end(op.in, op.in_waits, tile.counters, run.first.position(), comparison_);
  const std::int64_t end = affordable(from, permitted_end(op.out, op.out_waits, tile.counters, from, comparison_));
  bool moved = false;
  while (!run.second.done() && run.second.position() < end && run.first.position() < line_end) {
    const std::int64_t step_position = run.second.position();
    // One line for each pass of dimension 0.
    const std::int64_t within = step_position % op.out.count[0];
    const std::int64_t line_address = run.first.address(), line_position = run.first.position();
    const Line* line = load_line(tile, line_address);
    if (line == nullptr) return false;
    const std::int64_t step_address = run.second.address();
    if (!ScalingMemory::holds(step_address) || 8 * within + 8 > kLineBytes) {
      return fail(fmt::format("writes step {} of scaling memory", step_address));
    }
    std::int64_t steps = 1;
    if (observer_ == nullptr) {
      steps = std::min(equal_steps(run.second, op.out, end), op.out.count[0] - within);
      steps = std::min(steps, kLineBytes / 8 - within);
      steps = steps_inside(step_address, op.out.stride[0], steps, ScalingMemory::kSteps);
    }
    const auto stride = static_cast<std::int64_t>(op.out.stride[0]);
    for (std::int64_t i = 0; i < steps; ++i) {
      std::array<std::uint8_t, 8> known;
      line->copy_known(static_cast<int>(8 * (within + i)), 8, known.data());
      tile.scaling.set_step(step_address + i * stride, line->bytes.data() + 8 * (within + i), known.data());
    }
    run.second.advance(steps);
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
    if (!run.first.done()) return fail("its destination is complete, its source is not");
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

bool Chip::wide_to_narrow(Tile& tile, Unit& unit, const isa::WideToNarrow& op) {
  Running& run = *unit.running;
  start(unit, op.in, op.out);
  const std::int64_t from = run.second.position();
  const std::int64_t end = affordable(from, permitted_end(op.out, op.out_waits, tile.counters, from, comparison_));
  const std::int64_t line_end = permitted_end(op.in, op.in_waits, tile.counters, run.first.position(), comparison_);
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
    std::int64_t words = 1;
    // Neither skips nor ends of lines come between words of dimension 0, but where they come after every word.
    if (observer_ == nullptr && op.line_level > 0 && (op.skip_words == 0 || op.skip_level > 0)) {
      words = std::min(equal_steps(run.second, op.out, end), kLineWords - run.line_word);
      words = steps_inside(address, op.out.stride[0], words, kNarrowWords);
    }
    unpack_words(*line, run.line_word, words, address, static_cast<std::int64_t>(op.out.stride[0]), tile.narrow);
    run.second.advance(words);
    run.line_word += words - 1;
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
    if (!run.first.done()) return fail("its destination is complete, its source is not");
    finish(tile, unit, &op.in, &op.out);
    moved = true;
  }
  return moved;
}

}  // namespace reef::device
