// SPDX-License-Identifier: Apache-2.0
// Steps of tensor instructions in blocks: whole dimensions of the loops at once.
//
// What walk_rows.cpp says of steps in a row holds for any steps between two moments at which the unit waits or signals:
// nobody can tell them apart. So all of them are looked at together, with the last one's clock, by the places that they
// touch (footprint.h) instead of one after the other. A block must be rectangular in every nest of the instruction,
// and everything in it must be in order and written; else rows or single steps find out what is not.
#include <algorithm>
#include <cstring>

#include "audit/footprint.h"
#include "audit/walk.h"

namespace reef::audit {
namespace {

constexpr std::int64_t kUnits = 4;  // bytes of a word, quarters of a line
constexpr std::size_t kMostIntervals = 1 << 14;

// Results that the block's steps end.
std::int64_t results_in(const Worker& worker, const isa::TensorOperation& op, std::int64_t steps) {
  if (op.group_level >= 0) {
    const std::int64_t group = op.psum.pass_length(op.group_level), position = worker.psum.position();
    return (position + steps) / group - position / group;
  }
  std::int64_t results = 1;
  for (int k = 0; k < op.loops.dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    const std::int64_t count = std::min(steps, op.loops.count[d]);
    const bool reaches_last = worker.first.index(k) + count == op.loops.count[d];
    if ((op.reduce_dims >> k & 1) == 0) {
      results *= count;
    } else if (!reaches_last) {
      return 0;
    }
    steps /= count;
    steps = std::max<std::int64_t>(steps, 1);
  }
  return results;
}

bool are_written(const std::vector<std::uint8_t>& written, const std::vector<Interval>& intervals) {
  return std::all_of(intervals.begin(), intervals.end(), [&](const Interval& interval) {
    return std::memchr(written.data() + interval.first, 0, static_cast<std::size_t>(interval.count)) == nullptr;
  });
}

bool are_written(const std::vector<std::uint64_t>& lines, const std::vector<Interval>& intervals, std::uint64_t cells) {
  for (const Interval& interval : intervals) {
    std::uint64_t all = cells;
    for (std::int64_t i = 0; i < interval.count; ++i) all &= lines[at(interval.first + i)];
    if (all != cells) return false;
  }
  return true;
}

// Whether the smallest intervals around both lists overlap.
bool may_overlap(const std::vector<Interval>& some, const std::vector<Interval>& others) {
  const auto bounds = [](const std::vector<Interval>& list) {
    Interval all = list.front();
    for (const Interval& interval : list) {
      const std::int64_t end = std::max(all.first + all.count, interval.first + interval.count);
      all.first = std::min(all.first, interval.first);
      all.count = end - all.first;
    }
    return all;
  };
  if (some.empty() || others.empty()) return false;
  const Interval a = bounds(some), b = bounds(others);
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

bool are_within(const PlaceLog& log, const std::vector<Interval>& intervals) {
  return std::all_of(intervals.begin(), intervals.end(), [&](const Interval& interval) {
    return log.holds(interval.first) && log.holds(interval.first + interval.count - 1);
  });
}

bool knows_writes(const PlaceLog& log, const std::vector<Interval>& intervals, const Agent& agent) {
  return std::all_of(intervals.begin(), intervals.end(),
                     [&](const Interval& interval) { return log.knows_writes(interval.first, interval.count, agent); });
}

bool knows_reads(const PlaceLog& log, const std::vector<Interval>& intervals, const Agent& agent) {
  return std::all_of(intervals.begin(), intervals.end(),
                     [&](const Interval& interval) { return log.knows_reads(interval.first, interval.count, agent); });
}

// Whether walk_rows.cpp takes the steps together, which is quicker.
bool is_row(const Worker& worker, std::int64_t steps) {
  const bool multiplies = worker.operation->opcode == isa::Opcode::kMultiplyAdd;
  return steps <= worker.first.run() && steps <= worker.param.run() && worker.param_shape.stride[0] <= kUnits &&
         (!multiplies || (steps <= worker.in.run() && worker.in_shape.stride[0] <= kUnits)) &&
         (worker.out.done() || worker.out_shape.stride[0] == kUnits);
}

// Words of results that follow before the nest that stores them changes buffers, signals, or is clipped.
std::int64_t result_words_together(const Worker& worker) {
  const isa::NestShape& nest = worker.out_shape;
  const std::int64_t position = worker.out.position();
  std::int64_t words = steps_on_this_side(nest, worker.out);
  if (worker.second_passes.next != kNever) words = std::min(words, worker.second_passes.next - position);
  if (nest.clip_dim == 0) return words;
  if (worker.out.at_last(nest.clip_dim)) return 0;
  const std::int64_t pass = nest.pass_length(nest.clip_dim);
  return std::min(words, pass - position % pass);
}

bool has_blocks(const isa::TensorOperation& op, isa::Opcode opcode) {
  const bool has_clip = op.loops.clip_dim != 0 || op.in.clip_dim != 0 || op.param.clip_dim != 0 ||
                        (op.group_level >= 0 && op.psum.clip_dim != 0);
  return opcode != isa::Opcode::kResample && !op.sums_are_results() && !has_clip;
}

}  // namespace

// Steps until the unit waits, signals or changes a buffer, as far as they are a block of all nests.
std::int64_t Walk::longest_block(const Worker& worker, const isa::TensorOperation& op) const {
  const bool multiplies = worker.operation->opcode == isa::Opcode::kMultiplyAdd;
  const std::int64_t position = worker.first.position();
  std::int64_t steps = std::min(
      {op.loops.size() - position, steps_of_scaling(worker, op), steps_on_this_side(worker.param_shape, worker.param)});
  if (multiplies) steps = std::min(steps, steps_on_this_side(worker.in_shape, worker.in));
  if (worker.first_gate.next_any != kNever) steps = std::min(steps, worker.first_gate.next_any - position);
  if (worker.first_passes.next != kNever) steps = std::min(steps, worker.first_passes.next - worker.param.position());
  return block_of_all(worker, op, steps);
}

// The largest block of at most `steps` steps in every nest that steps walk.
std::int64_t Walk::block_of_all(const Worker& worker, const isa::TensorOperation& op, std::int64_t steps) const {
  const bool multiplies = worker.operation->opcode == isa::Opcode::kMultiplyAdd;
  for (std::int64_t before = -1; before != steps && steps > 0;) {
    before = steps;
    steps = block_at(op.loops, worker.first, steps);
    if (multiplies) steps = block_at(worker.in_shape, worker.in, steps);
    steps = block_at(worker.param_shape, worker.param, steps);
    if (op.group_level >= 0) steps = block_at(op.psum, worker.psum, steps);
  }
  return steps;
}

// A block whose results are a block of the nest that stores them, and end with one signal at most.
bool Walk::find_block(const Worker& worker, const isa::TensorOperation& op, StepBlock& block) const {
  block.steps = longest_block(worker, op);
  while (block.steps > 1) {
    block.results = results_in(worker, op, block.steps);
    if (block.results == 0) return true;
    if (worker.out.done() || worker.out.position() != worker.results * op.out_words) return false;
    const std::int64_t words = block.results * op.out_words;
    std::int64_t possible = std::min(words, result_words_together(worker));
    if (possible > 0) possible = block_at(worker.out_shape, worker.out, possible) / op.out_words * op.out_words;
    if (possible == words) return true;
    block.steps = block_of_all(worker, op, block.steps * possible / words);
  }
  return false;
}

bool Walk::find_places(const Worker& worker, const isa::TensorOperation& op, StepBlock& block) const {
  block.input_bytes = block.in.accesses = 0;
  block.in.intervals.clear();
  block.out.intervals.clear();
  if (!footprint_of(worker.param_shape, worker.param, block.steps, 1, kUnits, kMostIntervals, block.param))
    return false;
  if (worker.operation->opcode == isa::Opcode::kMultiplyAdd) {
    block.input_bytes = std::int64_t{op.products} * (op.in_16 ? 2 : 1);
    if (!footprint_of(worker.in_shape, worker.in, block.steps, block.input_bytes, kUnits, kMostIntervals, block.in))
      return false;
  }
  if (block.results == 0) return true;
  block.scaling = scaling_reads(worker, op);
  const std::int64_t words = block.results * op.out_words;
  return footprint_of(worker.out_shape, worker.out, words, 1, kUnits, kMostIntervals, block.out);
}

// Every place is there, and every access to it is ordered.
bool Walk::is_block_in_order(const TileState& tile, const Worker& worker, const StepBlock& block) const {
  const Agent& agent = *worker.agent;
  if (!are_within(*tile.wide, block.param.intervals) || !are_within(*tile.narrow, block.in.intervals) ||
      !are_within(*tile.narrow, block.out.intervals)) {
    return false;
  }
  bool in_order =
      knows_writes(*tile.wide, block.param.intervals, agent) && knows_writes(*tile.narrow, block.in.intervals, agent) &&
      knows_writes(*tile.narrow, block.out.intervals, agent) && knows_reads(*tile.narrow, block.out.intervals, agent);
  if (block.results == 0) return in_order;
  const ScalingReads& scaling = block.scaling;
  if (scaling.has_zero_line) {
    in_order = in_order && tile.wide->holds(scaling.zero_line) && tile.wide->knows_writes(scaling.zero_line, 1, agent);
  }
  scaling.for_each([&](std::int64_t place) {
    const Interval interval{place, scaling.steps};
    in_order = in_order && tile.scaling->knows_writes(place, scaling.steps, agent) &&
               are_written(tile.scaling_written, {interval});
  });
  return in_order;
}

// Steps that read something which nothing wrote.
std::int64_t Walk::block_steps_of_nothing(const TileState& tile, const Worker& worker, const isa::TensorOperation& op,
                                          const StepBlock& block) const {
  const std::uint64_t cells = cell_mask(op);
  isa::NestCursor in = worker.in, param = worker.param;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < block.steps; ++i) {
    const auto line = static_cast<std::size_t>(param.address() / kUnits);
    bool is_written = (tile.wide_written[line] & cells) == cells;
    if (block.input_bytes > 0) {
      const std::int64_t last = (in.address() + block.input_bytes - 1) / kUnits;
      for (std::int64_t word = in.address() / kUnits; word <= last; ++word) {
        is_written = is_written && tile.narrow_written[at(word)] != 0;
      }
      in.advance();
    }
    count += is_written ? 0 : 1;
    param.advance();
  }
  return count;
}

void Walk::note_block(TileState& tile, Worker& worker, const isa::TensorOperation& op, const StepBlock& block) {
  Agent& agent = *worker.agent;
  agent.tick(static_cast<Clock>(block.steps));
  if (!block.is_written) worker.steps_of_nothing += block_steps_of_nothing(tile, worker, op, block);
  statistics_.reads += block.in.accesses + block.param.accesses;
  for (const Interval& interval : block.in.intervals) {
    tile.narrow->note_reads(interval.first, interval.count, agent, kTensorReader);
  }
  for (const Interval& interval : block.param.intervals) note_lines_read(tile, interval.first, interval.count, agent);
  if (block.results == 0) return;
  note_scaling_reads(tile, block.scaling, block.results, agent);
  const std::int64_t words = block.results * op.out_words;
  statistics_.writes += words;
  for (const Interval& interval : block.out.intervals) {
    tile.narrow->note_writes(interval.first, interval.count, agent);
    std::fill_n(tile.narrow_written.begin() + interval.first, interval.count, std::uint8_t{1});
  }
  worker.results += block.results;
  worker.out.seek(worker.out.position() + words);
}

std::int64_t Walk::tensor_block(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  if (worker.first.position() < worker.no_blocks_until || !has_blocks(op, worker.operation->opcode)) return 0;
  StepBlock& block = block_;
  if (!find_block(worker, op, block) || is_row(worker, block.steps)) return 0;
  bool is_possible = find_places(worker, op, block) && is_block_in_order(tile, worker, block);
  if (is_possible) {
    block.is_written = are_written(tile.narrow_written, block.in.intervals) &&
                       are_written(tile.wide_written, block.param.intervals, cell_mask(op));
    // Where results replace inputs of later steps, which of them was written when is seen step by step.
    is_possible = block.is_written || !may_overlap(block.in.intervals, block.out.intervals);
  }
  if (!is_possible) {
    worker.no_blocks_until = worker.first.position() + block.steps;
    return 0;
  }
  note_block(tile, worker, op, block);
  return block.steps;
}

}  // namespace reef::audit
