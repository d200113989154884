// SPDX-License-Identifier: Apache-2.0
// The tensor unit: instead of computing, it records what it would have computed with.
#include <algorithm>
#include <bit>

#include "retarget/machine.h"

namespace reef::retarget {

namespace {

constexpr int kMultiplierBytes = 256;  // of one half of the scaling memory
constexpr int kBiasStart = 512;
constexpr std::uint64_t kMaxFirstSteps = std::uint64_t{1} << 20;  // longer sums do not occur
constexpr Tag kMixed = ~Tag{0};                                   // of a cell that takes more than one byte

}  // namespace

// Number of the result that the step belongs to: only 0, 1 and "another" (2) are told apart.
int Machine::result_number(const Running& running) const {
  const auto& code = std::get<isa::TensorOperation>(running.code->code);
  if (running.code->opcode == isa::Opcode::kResample)
    return static_cast<int>(std::min<std::int64_t>(running.a.pass(2), 2));
  if (code.group_level >= 0) return static_cast<int>(std::min<std::int64_t>(running.psum.pass(code.group_level), 2));
  int number = 0;
  bool is_lowest = true;
  for (int k = 0; k < code.loops.dims; ++k) {
    if ((code.reduce_dims >> k & 1) != 0 || code.loops.count[static_cast<std::size_t>(k)] == 1) continue;
    if (running.a.index(k) > 1 || (running.a.index(k) == 1 && !is_lowest)) return 2;
    if (running.a.index(k) == 1) number = 1;
    is_lowest = false;
  }
  return number;
}

void Machine::start_tensor(Tile& tile, Unit& unit, Running& running) {
  const auto& code = std::get<isa::TensorOperation>(running.code->code);
  running.a = isa::NestCursor(code.loops, 0);
  running.b = isa::NestCursor(code.in, unit.phase.a);
  running.param = isa::NestCursor(code.param, unit.phase.b);
  running.psum = isa::NestCursor(code.psum, 0);
  running.out = isa::NestCursor(code.out, unit.phase.out);
  running.started = true;
  ++tile.run;
  std::int32_t& trace = trace_of_[running.instruction];
  if (trace < 0) {
    trace = static_cast<std::int32_t>(traces_.size());
    traces_.emplace_back();
    traces_.back().instruction = running.instruction;
  }
  running.trace = trace;
  traces_[static_cast<std::size_t>(trace)].tiles |= static_cast<std::uint16_t>(1u << tile.number);
}

Status Machine::record_parameters(Tile& tile, Running& running, const isa::TensorOperation& code) {
  const std::int64_t address = running.param.address();
  const std::int64_t line = address >> 2;
  REEF_REQUIRE(address >= 0 && line < kWideLines, "wide line {} does not exist", line);
  const auto quarter = static_cast<std::size_t>(address);
  const std::uint32_t version = tile.line_version[static_cast<std::size_t>(line)];
  if (tile.recorded_version[quarter] == version && tile.recorded_run[quarter] == tile.run) return ok_status();
  tile.recorded_version[quarter] = version;
  tile.recorded_run[quarter] = tile.run;
  const Tag* tags = &tile.wide[static_cast<std::size_t>(line * kLineBytes)];
  Sources& sources = traces_[static_cast<std::size_t>(running.trace)].parameters;
  const auto lane = static_cast<int>(address & 3);
  const int bytes = code.param_16 ? 2 * code.products : code.products;
  const int first = bytes == 4 ? 0 : code.param_16 ? lane & 2 : lane;
  for (int cell = 0; cell < code.cells; ++cell) {
    for (int k = 0; k < bytes; ++k) sources.add(tags[4 * cell + ((first + k) & 3)]);
  }
  steps_left_ -= code.cells / 16;
  return ok_status();
}

void Machine::record_first(Tile& tile, Running& running, const isa::TensorOperation& code) {
  if (tile.number != std::countr_zero(static_cast<unsigned>(running.code->tiles))) return;
  TensorOpTrace& trace = traces_[static_cast<std::size_t>(running.trace)];
  const int number = result_number(running);
  if (number > 1) return;
  const std::int64_t address = running.b.address();
  if (number == 1) {
    if (trace.result_step == 0) trace.result_step = static_cast<std::int32_t>(address - running.first_address);
    return;
  }
  if (trace.steps_per_result == 0) running.first_address = address;
  if (++trace.steps_per_result > kMaxFirstSteps) return;
  const std::int64_t param = running.param.address();
  const Tag* line = &tile.wide[static_cast<std::size_t>((param >> 2) * kLineBytes)];
  FirstStep step;
  step.parameter = line[param & 3];
  step.input_address = static_cast<std::int32_t>(address);
  if (address >= 0 && address < kNarrowBytes) {
    std::copy_n(tile.narrow.begin() + address, step.inputs.size(), step.inputs.begin());
  }
  if (code.param_16) step.words.assign(line, line + 4 * code.cells);
  trace.first.push_back(std::move(step));
}

// The pixels that a result is made of; the input nest gives only the first pixel of the source.
Status Machine::record_samples(Tile& tile, Running& running, const isa::TensorOperation& code) {
  if (!running.a.begins_pass(2)) return ok_status();
  const bool is_nearest = code.x.nearest;
  const std::int64_t x = code.x.phase + 2 * running.a.index(2), y = code.y.phase + 2 * running.a.index(3);
  const std::int64_t half = is_nearest ? 1 : 0;
  const std::int64_t first_x = (x + half * code.x.factor) / (2 * code.x.factor);
  const std::int64_t first_y = (y + half * code.y.factor) / (2 * code.y.factor);
  Sources& sources = traces_[static_cast<std::size_t>(running.trace)].input;
  for (std::int64_t dy = 0; dy < (is_nearest ? 1 : 2); ++dy) {
    for (std::int64_t dx = 0; dx < (is_nearest ? 1 : 2); ++dx) {
      const std::int64_t address =
          running.b.address() + (first_x + dx) * code.pixel_stride + (first_y + dy) * code.row_stride;
      REEF_REQUIRE(address >= 0 && address < kNarrowBytes, "narrow byte {} does not exist", address);
      for (int k = 0; k < 4; ++k) sources.add(tile.narrow[static_cast<std::size_t>(address + k)]);
    }
  }
  return ok_status();
}

Status Machine::record_step(Tile& tile, Running& running) {
  const auto& code = std::get<isa::TensorOperation>(running.code->code);
  TensorOpTrace& trace = traces_[static_cast<std::size_t>(running.trace)];
  if (running.code->opcode == isa::Opcode::kResample) return record_samples(tile, running, code);
  if (running.code->opcode == isa::Opcode::kMultiplyAdd) {
    const std::int64_t address = running.b.address();
    REEF_REQUIRE(address >= 0 && address < kNarrowBytes, "narrow byte {} does not exist", address);
    const int bytes = code.products * (code.in_16 ? 2 : 1);
    // An op that works in place and visits a result twice would seem to read itself.
    for (int k = 0; k < bytes; ++k) {
      const Tag tag = tile.narrow[static_cast<std::size_t>(address + k)];
      const bool is_own = tag_origin(tag) == Origin::kValue && value_instruction(tag) == running.instruction;
      if (!is_own) trace.input.add(tag);
    }
  }
  REEF_RETURN_IF_ERROR(record_parameters(tile, running, code));
  record_first(tile, running, code);
  if (code.is_plain_copy()) record_copy(tile, running, code);
  if (!code.has_zero_line) return ok_status();
  const std::int64_t buffer =
      (running.a.pass(code.scaling_level) + tile.units[static_cast<std::size_t>(isa::Unit::kTensor)].phase.scaling) & 1;
  const std::int64_t line = code.zero_line + code.zero_line_step * buffer;
  REEF_REQUIRE(line >= 0 && line < kWideLines, "wide line {} does not exist", line);
  if (!running.a.begins_pass(code.scaling_level)) return ok_status();
  for (int k = 0; k < 4 * code.cells; ++k) {
    trace.zero_points.add(tile.wide[static_cast<std::size_t>(line * kLineBytes + k)]);
  }
  return ok_status();
}

Status Machine::store_result(Tile& tile, Running& running, const isa::TensorOperation& code) {
  const auto tag_of = [&](int cell) {
    const Tag own = value_tag(running.instruction, cell & 63);
    if (!code.is_plain_copy() || cell >= code.cells) return own;
    const Tag copied = running.cell_tags[static_cast<std::size_t>(cell)];
    return copied != 0 && copied != kMixed ? copied : own;
  };
  if (code.sums_are_results()) {
    const std::int64_t line = running.psum.address() >> 2;
    REEF_REQUIRE(line >= 0 && line < kWideLines, "wide line {} does not exist", line);
    for (int cell = 0; cell < code.cells; ++cell) {
      std::fill_n(tile.wide.begin() + line * kLineBytes + 4 * cell, 4, tag_of(cell));
    }
    ++tile.line_version[static_cast<std::size_t>(line)];
  }
  const int bytes_per_cell = code.out_words * 4 >= 2 * code.cells && code.out_words > (code.cells + 3) / 4 ? 2 : 1;
  while (!running.out.done() && running.out.position() / code.out_words == running.results) {
    const std::int64_t address = running.out.address();
    REEF_REQUIRE(address >= 0 && address < kNarrowBytes, "narrow byte {} does not exist", address);
    const auto word = static_cast<int>(running.out.position() % code.out_words);
    for (int k = 0; k < 4; ++k) {
      tile.narrow[static_cast<std::size_t>(address + k)] = tag_of((4 * word + k) / bytes_per_cell);
    }
    running.out.advance();
    count(tile, code.avdata, running.out);
  }
  if (code.is_plain_copy()) running.cell_tags.assign(static_cast<std::size_t>(code.cells), 0);
  return ok_status();
}

// Which input byte each cell takes: the one whose weight, a byte of a constant word, is 1.
void Machine::record_copy(const Tile& tile, Running& running, const isa::TensorOperation& code) const {
  const std::int64_t address = running.param.address();
  const Tag* line = &tile.wide[static_cast<std::size_t>((address >> 2) * kLineBytes)];
  running.cell_tags.resize(static_cast<std::size_t>(code.cells));
  for (int cell = 0; cell < code.cells; ++cell) {
    Tag& taken = running.cell_tags[static_cast<std::size_t>(cell)];
    for (int k = 0; k < code.products; ++k) {
      const int lane = code.products == 4 ? k : static_cast<int>((address + k) & 3);
      const Tag weight = line[4 * cell + lane];
      std::uint32_t value = 2;  // unknown: not a copy
      if (tag_origin(weight) == Origin::kFill) {
        value = std::get<isa::Mesh>(job_->program[tag_number(weight)].code).fill_value >> (8 * lane) & 0xff;
      }
      if (value == 0) continue;
      const Tag input = tile.narrow[static_cast<std::size_t>(running.b.address() + k)];
      taken = value == 1 && taken == 0 && input != 0 ? input : kMixed;
    }
  }
}

Status Machine::finish_result(Tile& tile, const Unit& unit, Running& running) {
  const auto& code = std::get<isa::TensorOperation>(running.code->code);
  TensorOpTrace& trace = traces_[static_cast<std::size_t>(running.trace)];
  const auto half = static_cast<int>((running.a.pass(code.scaling_level) + unit.phase.scaling) & 1);
  if (running.recorded_pass != running.a.pass(code.scaling_level) && (code.has_bias || code.has_scales)) {
    running.recorded_pass = running.a.pass(code.scaling_level);
    for (int k = 0; k < 4 * code.cells; ++k) {
      const int at = kMultiplierBytes * half + k;
      if (code.has_bias) trace.biases.add(tile.scaling[static_cast<std::size_t>(kBiasStart + at)]);
      if (code.has_scales) trace.multipliers.add(tile.scaling[static_cast<std::size_t>(at)]);
    }
  }
  REEF_RETURN_IF_ERROR(store_result(tile, running, code));
  ++running.results;
  ++trace.results;
  if (code.activation && tile.has_table) {
    if (std::find(trace.tables.begin(), trace.tables.end(), tile.table) == trace.tables.end()) {
      trace.tables.push_back(tile.table);
    }
  }
  return ok_status();
}

Result<bool> Machine::run_tensor(Tile& tile, Unit& unit) {
  Running& running = *unit.running;
  if (std::holds_alternative<isa::LoadActivation>(running.code->code)) {
    tile.table = running.instruction;
    tile.has_table = true;
    unit.running.reset();
    return true;
  }
  const auto& code = std::get<isa::TensorOperation>(running.code->code);
  if (!running.started) start_tensor(tile, unit, running);
  const bool has_input = code.in.steps == code.loops.steps;
  const bool has_parameters = code.param.steps == code.loops.steps;
  bool moved = false;
  while (!running.a.done()) {
    if (!may_step(code.waits, running.a, tile.counters)) return moved;
    REEF_RETURN_IF_ERROR(record_step(tile, running));
    if (isa::ends_result(code, running.code->opcode, running.a, running.psum))
      REEF_RETURN_IF_ERROR(finish_result(tile, unit, running));
    running.last_pass = running.a.pass(code.scaling_level);
    running.a.advance();
    running.psum.advance();
    if (has_input) running.b.advance();
    if (has_parameters) {
      running.param.advance();
      if (running.code->opcode != isa::Opcode::kResample) count(tile, code.parameters, running.param);
    }
    moved = true;
    if (!spend(1)) return moved;
  }
  unit.phase.a += running.b.buffer_passes();
  unit.phase.b += running.param.buffer_passes();
  unit.phase.out += running.out.buffer_passes();
  unit.phase.scaling += static_cast<std::uint32_t>(running.last_pass) + 1;
  unit.running.reset();
  return true;
}

}  // namespace reef::retarget
