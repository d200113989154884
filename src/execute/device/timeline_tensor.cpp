// SPDX-License-Identifier: Apache-2.0
// Arithmetic in simulated time: one cycle a step, and where order is followed, every access of every step.
#include <algorithm>

#include "execute/device/chip.h"
#include "execute/device/tensor_plan.h"
#include "execute/device/timeline.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

// The first step after which results come: where outer loops are summed, all results come in the last round.
std::int64_t first_result_step(const isa::TensorOperation& op, isa::Opcode opcode) {
  if (reduces_innermost(op, opcode)) return 0;
  std::int64_t rounds = 1;
  bool is_outer = false;
  for (int d = 0; d < op.loops.dims; ++d) {
    const bool is_reduced = (op.reduce_dims >> d & 1) != 0;
    if (!is_reduced) is_outer = true;
    if (is_reduced && is_outer) rounds *= op.loops.count[at(d)];
  }
  return op.loops.size() - op.loops.size() / rounds;
}

// Signals of a nest whose positions go from `from` to `to` while so many cycles pass.
struct EvenSignals {
  std::int64_t count = 0;
  double first = 0, step = 0;  // cycles after the beginning
};

EvenSignals even_signals(const isa::Signal& signal, const isa::NestShape& nest, std::int64_t from, std::int64_t to,
                         double cycles) {
  EvenSignals even;
  even.count = signalled(signal, nest, from, to);
  if (even.count <= 0 || to <= from) return even;
  const double per_position = cycles / static_cast<double>(to - from);
  const std::int64_t length = nest.pass_length(signal.level);
  const std::int64_t first_end = (from / length + 1) * length;
  even.first = static_cast<double>(std::min(first_end, to) - from) * per_position;
  if (even.count > 1) even.step = (cycles - even.first) / static_cast<double>(even.count - 1);
  return even;
}

}  // namespace

void Timeline::computed(const TensorMove& move) {
  const auto& op = std::get<isa::TensorOperation>(move.run->operation->code);
  if (options_.find_races) return walk_tensor_steps(move, op);
  // Pieces that begin where the finest wait may have to be waited for.
  std::int64_t piece = op.loops.size();
  for (const isa::Wait& wait : op.waits) {
    if (wait.increment != 0) piece = std::min(piece, op.loops.pass_length(wait.level));
  }
  for (std::int64_t from = move.from; from < move.to;) {
    const std::int64_t to = std::min(move.to, (from / piece + 1) * piece);
    compute_block(move, from, to);
    from = to;
  }
}

void Timeline::compute_block(const TensorMove& move, std::int64_t from, std::int64_t to) {
  const auto& op = std::get<isa::TensorOperation>(move.run->operation->code);
  const isa::Opcode opcode = move.run->operation->opcode;
  const int t = move.tile->number;
  TileState& tile = tiles_[at(t)];
  Agent& tensor = agent(t, static_cast<int>(isa::Unit::kTensor));
  pass_gate(tensor, tensor.source, op.loops, op.waits, tile.counters, from);
  // Results come evenly from the first result step on.
  const std::int64_t first_result = first_result_step(op, opcode);
  const auto out_at = [&](std::int64_t position) {
    const std::int64_t begin = std::max(move.from, first_result), end = std::max(move.to, begin + 1);
    const std::int64_t reached = std::clamp(position, begin, end);
    if (reached == end) return move.out_to;
    return move.out_from + (move.out_to - move.out_from) * (reached - begin) / (end - begin);
  };
  const auto param_at = [&](std::int64_t position) {
    return move.param_from + (move.param_to - move.param_from) * (position - move.from) / (move.to - move.from);
  };
  const std::int64_t out_from = out_at(from), out_to = to == move.to ? move.out_to : out_at(to);
  const double steps = static_cast<double>(to - from) * options_.timing.costs.tensor_step;
  const double words = static_cast<double>(out_to - out_from) * options_.timing.costs.result_word;
  double cycles = std::max(steps, words);
  if (!op.accumulate_inside) {  // one visit for each pass of the innermost loop
    cycles += options_.timing.reading.sum_visit * static_cast<double>(to - from) /
              static_cast<double>(op.loops.pass_length(1));
  }
  tensor.moment.wait_for(tile.port);
  const Stamp begin = stamp_of(tensor);
  work(tensor, Spent::kCompute, cycles);
  tile.port = tensor.moment;
  const auto add = [&](const EvenSignals& even, isa::TileCounter counter) {
    if (even.count <= 0) return;
    Stamp first = begin;
    first.moment.spend(Spent::kCompute, even.first);
    tile.counters[at(counter)].add(first, even.count, even.step, 0, Spent::kCompute);
  };
  add(even_signals(op.avdata, op.out, out_from, out_to, cycles), isa::TileCounter::kAvdata);
  if (opcode != isa::Opcode::kResample) {
    add(even_signals(op.parameters, op.param, param_at(from), param_at(to), cycles), isa::TileCounter::kParameters);
  }
}

// Scales and biases of the cells, and the line of zero points.
void Timeline::read_scaling(TileState& tile, Agent& tensor, const isa::TensorOperation& op) {
  const std::int64_t pass = tensor.loops.position() / op.loops.pass_length(op.scaling_level) + tensor.scaling_phase;
  const int buffer = static_cast<int>(pass & 1);
  const int steps = (op.cells + 1) / 2;  // of two words
  for (int s = 0; s < steps; ++s) {
    if (op.has_scales) touch(tile.scaling.get(), false, 32 * buffer + s, tensor);
    if (op.has_bias) touch(tile.scaling.get(), false, 64 + 32 * buffer + s, tensor);
  }
  const std::int64_t line = op.zero_line + op.zero_line_step * buffer;
  if (op.has_zero_line && WideMemory::holds(line)) {
    touch(tile.wide.get(), false, line, tensor);
  }
}

void Timeline::walk_tensor_steps(const TensorMove& move, const isa::TensorOperation& op) {
  const isa::Opcode opcode = move.run->operation->opcode;
  const int t = move.tile->number;
  TileState& tile = tiles_[at(t)];
  Agent& tensor = agent(t, static_cast<int>(isa::Unit::kTensor));
  const auto use = [&](AccessLog* log, bool writes, std::int64_t place, std::int64_t places) {
    if (place >= 0 && place < places) touch(log, writes, place, tensor);
  };
  const std::int64_t in_bytes = op.products * (op.in_16 ? 2 : 1);
  std::int64_t words_behind = 0;  // of the cycles that results need
  while (!tensor.loops.done() && tensor.loops.position() < move.to) {
    pass_gate(tensor, tensor.source, op.loops, op.waits, tile.counters, tensor.loops.position());
    tensor.knowledge.tick();
    if (opcode == isa::Opcode::kMultiplyAdd) {
      const std::int64_t first = tensor.in.address() >> 2, last = (tensor.in.address() + in_bytes - 1) >> 2;
      for (std::int64_t word = first; word <= last; ++word) use(tile.narrow.get(), false, word, kNarrowWords);
    }
    if (opcode != isa::Opcode::kResample) {
      use(tile.wide.get(), false, tensor.param.address() >> 2, chip::kWideLines);
    }
    const bool ends = isa::ends_result(op, opcode, tensor.loops, tensor.psum);
    const std::int64_t param_from = tensor.param.position(), out_from = tensor.out.position();
    double cycles = options_.timing.costs.tensor_step;
    if (ends) {
      read_scaling(tile, tensor, op);
      if (op.sums_are_results()) use(tile.wide.get(), true, tensor.psum.address() >> 2, chip::kWideLines);
      for (int w = 0; w < op.out_words && !tensor.out.done(); ++w) {
        use(tile.narrow.get(), true, tensor.out.address() >> 2, kNarrowWords);
        tensor.out.advance();
      }
      words_behind += tensor.out.position() - out_from - 1;
    }
    if (ends && words_behind > 0) {
      cycles += static_cast<double>(words_behind) * options_.timing.costs.result_word;
      words_behind = 0;
    } else if (!ends) {
      --words_behind;
    }
    tensor.moment.wait_for(tile.port);
    work(tensor, Spent::kCompute, cycles);
    tile.port = tensor.moment;
    tensor.loops.advance();
    if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) tensor.in.advance();
    if (opcode != isa::Opcode::kResample) tensor.param.advance();
    tensor.psum.advance();
    signal(tensor, tile.counters[at(isa::TileCounter::kAvdata)],
           signalled(op.avdata, op.out, out_from, tensor.out.position()), Spent::kCompute);
    if (opcode != isa::Opcode::kResample) {
      signal(tensor, tile.counters[at(isa::TileCounter::kParameters)],
             signalled(op.parameters, op.param, param_from, tensor.param.position()), Spent::kCompute);
    }
  }
}

}  // namespace reef::device
