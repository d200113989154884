// SPDX-License-Identifier: Apache-2.0
// Tensor instructions, step by step: which words, lines and scaling steps each of them reads and writes.
//
// Partial sums that live in wide memory are not followed, but for those that are results themselves.
#include <algorithm>

#include "audit/walk.h"

namespace reef::audit {
namespace {

constexpr std::size_t kReader = 0;  // of all three memories

}  // namespace

bool Walk::read_bytes(TileState& tile, std::int64_t byte, std::int64_t bytes, const Agent& agent) {
  bool all_written = true;
  for (std::int64_t word = byte >> 2; word <= (byte + bytes - 1) >> 2; ++word) {
    read(*tile.narrow, word, agent, kReader);
    all_written &= tile.narrow->holds(word) && tile.narrow_written[static_cast<std::size_t>(word)] != 0;
  }
  return all_written;
}

// Scales and biases of the cells.
bool Walk::read_scaling(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  if (!op.has_scales && !op.has_bias) return true;
  const std::int64_t pass = worker.first.position() / op.loops.pass_length(op.scaling_level) + worker.phases.scaling;
  const std::int64_t buffer = pass & 1, steps = (op.cells + 1) / 2;  // of two words
  bool all_written = true;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{64}}) {
      if (!(first == 0 ? op.has_scales : op.has_bias)) continue;
      const std::int64_t place = first + 32 * buffer + step;
      read(*tile.scaling, place, *worker.agent, kReader);
      all_written &= tile.scaling_written[static_cast<std::size_t>(place)] != 0;
    }
  }
  return all_written;
}

// The nearest input pixel of an output pixel, or the four around it.
void Walk::read_resampled(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  const std::int64_t result = worker.results;
  const std::int64_t columns = op.loops.count[2], rows = op.loops.count[3];
  const std::int64_t px = op.x.phase + 2 * (result % columns), py = op.y.phase + 2 * (result / columns % rows);
  const std::int64_t fx = 2 * std::int64_t{op.x.factor}, fy = 2 * std::int64_t{op.y.factor};
  const std::int64_t x = op.x.nearest ? (px + op.x.factor) / fx : px / fx;
  const std::int64_t y = op.x.nearest ? (py + op.y.factor) / fy : py / fy;
  const int taps = op.x.nearest ? 1 : 2;
  for (int ty = 0; ty < taps; ++ty) {
    for (int tx = 0; tx < taps; ++tx) {
      const std::int64_t offset = (x + tx) * op.pixel_stride + (y + ty) * op.row_stride;
      // A neighbour of weight 0 may lie outside.
      const bool counts = op.x.nearest || ((tx == 0 || px % fx != 0) && (ty == 0 || py % fy != 0));
      if (counts) read_bytes(tile, worker.in.address() + offset, 4, *worker.agent);
    }
  }
}

bool Walk::tensor_step(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  const isa::Opcode opcode = worker.operation->opcode;
  Agent& agent = *worker.agent;
  agent.tick();
  bool all_written = true;
  if (opcode == isa::Opcode::kMultiplyAdd) {
    all_written &= read_bytes(tile, worker.in.address(), std::int64_t{op.products} * (op.in_16 ? 2 : 1), agent);
  }
  if (opcode != isa::Opcode::kResample) {
    const std::uint64_t cells = op.cells >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << op.cells) - 1;
    all_written &= (read_line(tile, worker.param.address() >> 2, agent, kReader) & cells) == cells;
  }
  if (isa::ends_result(op, opcode, worker.first, worker.psum)) {
    all_written &= read_scaling(tile, worker, op);
    if (op.has_zero_line && opcode == isa::Opcode::kMultiplyAdd) {
      const std::int64_t pass =
          worker.first.position() / op.loops.pass_length(op.scaling_level) + worker.phases.scaling;
      read_line(tile, op.zero_line + op.zero_line_step * (pass & 1), agent, kReader);
    }
    if (opcode == isa::Opcode::kResample) read_resampled(tile, worker, op);
    if (op.sums_are_results()) write_line(tile, worker.psum.address() >> 2, agent, ~std::uint64_t{0});
    if (worker.out.done()) {
      report_here(FindingKind::kNests, agent, "has more results than the nest they are stored by");
      return false;
    }
    // Words that the nest clips away are not stored.
    const std::int64_t end = ++worker.results * op.out_words;
    while (!worker.out.done() && worker.out.position() < end) {
      write_word(tile, worker.out.address() >> 2, agent, true);
      worker.out.advance();
    }
  }
  if (!all_written) {
    ++statistics_.reads_of_nothing;
    report_here(FindingKind::kNeverWritten, agent, "computes with memory that nothing wrote");
  }
  return true;
}

bool Walk::tensor(Worker& worker, const isa::TensorOperation& op) {
  TileState& tile = tile_of_worker(worker);
  Agent& agent = *worker.agent;
  const isa::Opcode opcode = worker.operation->opcode;
  const bool uses_psum = op.group_level >= 0 || op.sums_are_results();
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
    if (!spend(1)) return false;
    if (!tensor_step(tile, worker, op)) return true;
    worker.first.advance();
    if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) worker.in.advance();
    if (opcode != isa::Opcode::kResample) {
      worker.param.advance();
      signal(agent, tile.counters[op.parameters.counter], worker.first_passes.up_to(worker.param.position()));
    }
    if (uses_psum) worker.psum.advance();
    signal(agent, tile.counters[op.avdata.counter], worker.second_passes.up_to(worker.out.position()));
  }
  if (!worker.out.done()) report_here(FindingKind::kNests, agent, "has fewer results than the nest they are stored by");
  return true;
}

}  // namespace reef::audit
