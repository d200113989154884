// SPDX-License-Identifier: Apache-2.0
// Steps of tensor instructions in rows: what walk_tensor.cpp does step by step, for many steps at once.
//
// Between two moments at which an agent waits or signals nobody can tell its steps apart: whoever learns of one of them
// learns of all. So steps in a row may be looked at together, with the last one's clock for all their accesses, if none
// of them but the last waits or signals, and if every access is in order. Where one is not, or lies outside of a
// memory, nothing is done here, and the steps are made one by one: findings and figures are the same either way.
#include <algorithm>
#include <cstring>

#include "audit/walk.h"

namespace reef::audit {

// Steps, and the results that they end: none, one with the last step, or one with each.
struct StepGroup {
  std::int64_t steps = 0;  // 0: they must be made one by one
  std::int64_t results = 0;
};

namespace {

constexpr std::int64_t kUnitsPerPlace = 4;

// Places that steps access one after the other: bytes of narrow memory in words, or quarters of wide memory in lines.
struct Row {
  std::int64_t address = 0;  // of the first step, in units
  std::int64_t stride = 0;   // units from step to step, 0 to 4
  std::int64_t width = 0;    // units of a step; 0: the steps access nothing
  std::int64_t steps = 0;

  bool is_empty() const { return width == 0; }
  std::int64_t first_of(std::int64_t step) const { return (address + step * stride) >> 2; }
  std::int64_t last_of(std::int64_t step) const { return (address + step * stride + width - 1) >> 2; }
  std::int64_t first() const { return first_of(0); }
  std::int64_t count() const { return is_empty() ? 0 : last_of(steps - 1) - first() + 1; }
  // Places that each of the steps accesses, added up.
  std::int64_t accesses() const {
    if (is_empty()) return 0;
    if (stride % kUnitsPerPlace == 0) return steps * (last_of(0) - first() + 1);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < steps; ++i) sum += last_of(i) - first_of(i) + 1;
    return sum;
  }
};

bool toggles_with_every_step(const isa::NestShape& nest) { return nest.buffer_stride != 0 && nest.buffer_level == 0; }

// All dimensions but the innermost that a result is summed over are at their last index.
bool is_last_outside(const isa::TensorOperation& op, const Worker& worker) {
  if (op.group_level >= 0) {
    for (int k = 1; k < std::min(op.group_level, op.psum.dims); ++k) {
      if (!worker.psum.at_last(k)) return false;
    }
    return true;
  }
  for (int k = 1; k < op.loops.dims; ++k) {
    if ((op.reduce_dims >> k & 1) != 0 && !worker.first.at_last(k)) return false;
  }
  return true;
}

// Results that the nest they are stored by takes without a gap, and that end with one signal at most.
std::int64_t results_in_a_row(const Worker& worker, const isa::TensorOperation& op) {
  if (worker.out.done() || worker.out_shape.stride[0] != 4 || toggles_with_every_step(op.out)) return 0;
  if (worker.out.position() != worker.results * op.out_words) return 0;
  std::int64_t words = worker.out.run();
  if (worker.second_passes.next != kNever) words = std::min(words, worker.second_passes.next - worker.out.position());
  return words / op.out_words;
}

}  // namespace

struct StepRows {
  std::int64_t steps = 0, results = 0;
  Row in, param;
  std::int64_t out = 0, out_words = 0;  // words
  ScalingReads scaling;                 // nothing if there are no results
};

StepGroup Walk::group_of(const Worker& worker, const isa::TensorOperation& op) const {
  const isa::Opcode opcode = worker.operation->opcode;
  const bool is_irregular = opcode == isa::Opcode::kResample || op.sums_are_results() ||
                            toggles_with_every_step(op.in) || toggles_with_every_step(op.param) ||
                            (op.group_level < 0 && op.loops.clip_dim != 0);
  const std::int64_t position = worker.first.position();
  if (is_irregular || position < worker.single_steps_until) return {};
  std::int64_t steps = std::min(worker.first.run(), worker.param.run());
  if (opcode == isa::Opcode::kMultiplyAdd) steps = std::min(steps, worker.in.run());
  // Every step is a result of its own.
  const bool is_group_of_one = op.group_level >= 0 && op.psum.pass_length(op.group_level) == 1;
  if (op.group_level >= 0 && !is_group_of_one) steps = std::min(steps, worker.psum.run());
  if (worker.first_gate.next_any != kNever) steps = std::min(steps, worker.first_gate.next_any - position);
  if (worker.first_passes.next != kNever) {
    steps = std::min(steps, worker.first_passes.next - worker.param.position());
  }
  if (!is_group_of_one && !is_last_outside(op, worker)) return {steps, 0};
  const bool ends_each = op.group_level >= 0 ? is_group_of_one : (op.reduce_dims & 1) == 0;
  if (ends_each) {
    steps = std::min({steps, results_in_a_row(worker, op), steps_of_scaling(worker, op)});
    return {steps, steps};
  }
  const std::int64_t until_result = op.group_level >= 0 ? worker.psum.run() : worker.first.run();
  if (steps < until_result) return {steps, 0};
  if (results_in_a_row(worker, op) > 0) return {steps, 1};
  return {steps - 1, 0};
}

bool Walk::are_in_order(const TileState& tile, const Worker& worker, const StepRows& rows) const {
  const Agent& agent = *worker.agent;
  const auto is_read_in_order = [&](const PlaceLog& log, const Row& row) {
    if (row.is_empty()) return true;
    const std::int64_t last = row.first() + row.count() - 1;
    return log.holds(row.first()) && log.holds(last) && log.knows_writes(row.first(), row.count(), agent);
  };
  if (!is_read_in_order(*tile.wide, rows.param) || !is_read_in_order(*tile.narrow, rows.in)) return false;
  if (rows.results == 0) return true;
  bool in_order = tile.narrow->holds(rows.out) && tile.narrow->holds(rows.out + rows.out_words - 1) &&
                  tile.narrow->knows_writes(rows.out, rows.out_words, agent) &&
                  tile.narrow->knows_reads(rows.out, rows.out_words, agent);
  const ScalingReads& scaling = rows.scaling;
  if (scaling.has_zero_line) {
    in_order = in_order && tile.wide->holds(scaling.zero_line) && tile.wide->knows_writes(scaling.zero_line, 1, agent);
  }
  scaling.for_each(
      [&](std::int64_t place) { in_order = in_order && tile.scaling->knows_writes(place, scaling.steps, agent); });
  return in_order;
}

namespace {

bool are_all_written(const std::vector<std::uint8_t>& written, std::int64_t first, std::int64_t count) {
  return count == 0 || std::memchr(written.data() + first, 0, static_cast<std::size_t>(count)) == nullptr;
}

// Steps that read something which nothing wrote.
std::int64_t steps_of_nothing(const TileState& tile, const StepRows& rows, std::uint64_t cells) {
  bool has_scaling = true;
  rows.scaling.for_each([&](std::int64_t place) {
    has_scaling = has_scaling && are_all_written(tile.scaling_written, place, rows.scaling.steps);
  });
  std::uint64_t all_lines = ~std::uint64_t{0};
  for (std::int64_t k = 0; k < rows.param.count(); ++k) {
    all_lines &= tile.wide_written[reef::at(rows.param.first() + k)];
  }
  const bool has_lines = (all_lines & cells) == cells;
  if (has_scaling && has_lines && are_all_written(tile.narrow_written, rows.in.first(), rows.in.count())) return 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows.steps; ++i) {
    const std::uint64_t line = tile.wide_written[reef::at(rows.param.first_of(i))];
    bool is_written = (line & cells) == cells;
    for (std::int64_t k = rows.in.first_of(i); !rows.in.is_empty() && k <= rows.in.last_of(i); ++k) {
      is_written = is_written && tile.narrow_written[reef::at(k)] != 0;
    }
    const bool ends_result = rows.results == rows.steps || (rows.results == 1 && i + 1 == rows.steps);
    if (!is_written || (ends_result && !has_scaling)) ++count;
  }
  return count;
}

}  // namespace

std::int64_t Walk::steps_of_scaling(const Worker& worker, const isa::TensorOperation& op) {
  if (!op.has_scales && !op.has_bias && !op.has_zero_line) return kNever;
  const std::int64_t pass = op.loops.pass_length(op.scaling_level);
  return pass - worker.first.position() % pass;
}

ScalingReads Walk::scaling_reads(const Worker& worker, const isa::TensorOperation& op) const {
  const std::int64_t pass = worker.first.position() / op.loops.pass_length(op.scaling_level) + worker.phases.scaling;
  ScalingReads scaling;
  scaling.first = 32 * (pass & 1);
  scaling.steps = (op.cells + 1) / 2;  // of two words
  scaling.has_scales = op.has_scales;
  scaling.has_bias = op.has_bias;
  scaling.has_zero_line = op.has_zero_line && worker.operation->opcode == isa::Opcode::kMultiplyAdd;
  scaling.zero_line = op.zero_line + op.zero_line_step * (pass & 1);
  return scaling;
}

void Walk::note_scaling_reads(TileState& tile, const ScalingReads& scaling, std::int64_t results, const Agent& agent) {
  scaling.for_each([&](std::int64_t place) {
    statistics_.reads += results * scaling.steps;
    tile.scaling->note_reads(place, scaling.steps, agent, kTensorReader);
  });
  if (!scaling.has_zero_line) return;
  statistics_.reads += results - 1;
  read_line(tile, scaling.zero_line, agent, kTensorReader);
}

void Walk::note_lines_read(TileState& tile, std::int64_t first, std::int64_t count, const Agent& agent) {
  tile.wide->note_reads(first, count, agent, kTensorReader);
  for (std::int64_t line = first; line < first + count; ++line) {
    const auto at = static_cast<std::size_t>(line);
    if (!tile.wide->is_written(line) && tile.wide_written[at] != 0) tile.wide_relied_on[at] = 1;
  }
}

void Walk::note_rows(TileState& tile, Worker& worker, const isa::TensorOperation& op, const StepRows& rows) {
  Agent& agent = *worker.agent;
  agent.tick(static_cast<Clock>(rows.steps));
  worker.steps_of_nothing += steps_of_nothing(tile, rows, cell_mask(op));
  statistics_.reads += rows.in.accesses() + rows.param.accesses();
  if (!rows.in.is_empty()) tile.narrow->note_reads(rows.in.first(), rows.in.count(), agent, kTensorReader);
  note_lines_read(tile, rows.param.first(), rows.param.count(), agent);
  if (rows.results == 0) return;
  note_scaling_reads(tile, rows.scaling, rows.results, agent);
  statistics_.writes += rows.out_words;
  tile.narrow->note_writes(rows.out, rows.out_words, agent);
  std::fill_n(tile.narrow_written.begin() + rows.out, rows.out_words, std::uint8_t{1});
  worker.results += rows.results;
  worker.out.advance(rows.out_words);
}

std::int64_t Walk::tensor_steps(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  const StepGroup group = group_of(worker, op);
  if (group.steps <= 0) return 0;
  const bool multiplies = worker.operation->opcode == isa::Opcode::kMultiplyAdd;
  const std::uint64_t in_stride = group.steps > 1 ? worker.in_shape.stride[0] : 0;
  const std::uint64_t param_stride = group.steps > 1 ? worker.param_shape.stride[0] : 0;
  StepRows rows;
  rows.steps = group.steps;
  rows.results = group.results;
  rows.param = {worker.param.address(), static_cast<std::int64_t>(param_stride), 1, group.steps};
  if (multiplies) {
    const std::int64_t bytes = std::int64_t{op.products} * (op.in_16 ? 2 : 1);
    rows.in = {worker.in.address(), static_cast<std::int64_t>(in_stride), bytes, group.steps};
  }
  if (group.results > 0) {
    rows.out = worker.out.address() >> 2;
    rows.out_words = group.results * op.out_words;
    rows.scaling = scaling_reads(worker, op);
  }
  const bool are_rows = (!multiplies || in_stride <= kUnitsPerPlace) && param_stride <= kUnitsPerPlace;
  bool is_possible = are_rows && are_in_order(tile, worker, rows);
  if (is_possible && group.results > 0 && multiplies) {
    // Where results replace inputs of later steps, which of them was written when is seen step by step.
    const bool overlap = rows.out < rows.in.first() + rows.in.count() && rows.in.first() < rows.out + rows.out_words;
    is_possible = !overlap || are_all_written(tile.narrow_written, rows.in.first(), rows.in.count());
  }
  if (!is_possible) {
    worker.single_steps_until = worker.first.position() + group.steps;
    return 0;
  }
  note_rows(tile, worker, op, rows);
  return group.steps;
}

}  // namespace reef::audit
