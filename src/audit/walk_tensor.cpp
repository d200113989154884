// SPDX-License-Identifier: Apache-2.0
// Tensor instructions, step by step: which words, lines and scaling steps each of them reads and writes.
//
// Partial sums that live in wide memory are not followed, but for those that are results themselves.
#include <algorithm>
#include <utility>

#include "audit/walk.h"

namespace reef::audit {
namespace {}  // namespace

bool Walk::read_bytes(TileState& tile, std::int64_t byte, std::int64_t bytes, const Agent& agent) {
  bool all_written = true;
  for (std::int64_t word = byte >> 2; word <= (byte + bytes - 1) >> 2; ++word) {
    read(*tile.narrow, word, agent, kTensorReader);
    all_written &= tile.narrow->holds(word) && tile.narrow_written[at(word)] != 0;
  }
  return all_written;
}

// Scales and biases of the cells.
bool Walk::read_scaling(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  if (!op.has_scales && !op.has_bias) return true;
  const std::int64_t pass = worker.first.position() / op.loops.pass_length(op.scaling_level) + worker.phases.scaling;
  const std::int64_t buffer = pass & 1, steps = (op.cells + 1) / 2;  // of two words
  bool all_written = true;
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{64}}) {
    if (!(first == 0 ? op.has_scales : op.has_bias)) continue;
    const std::int64_t place = first + 32 * buffer;
    if (tile.scaling->knows_writes(place, steps, *worker.agent)) {
      statistics_.reads += steps;
      tile.scaling->note_reads(place, steps, *worker.agent, kTensorReader);
    } else {
      for (std::int64_t step = 0; step < steps; ++step) read(*tile.scaling, place + step, *worker.agent, kTensorReader);
    }
    const auto written = tile.scaling_written.begin() + place;
    all_written &= std::find(written, written + steps, 0) == written + steps;
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

void Walk::note_steps_of_nothing(Worker& worker) {
  if (worker.steps_of_nothing == 0) return;
  statistics_.reads_of_nothing += worker.steps_of_nothing;
  Observed observed;
  observed.kind = FindingKind::kNeverWritten;
  observed.second = worker.job.index;
  observed.tile = worker.tile;
  observed.detail = "computes with memory that nothing wrote";
  observed.times = static_cast<std::uint64_t>(std::exchange(worker.steps_of_nothing, 0));
  findings_.add(observed);
}

// Words that the nest clips away are not stored.
bool Walk::store_result(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  Agent& agent = *worker.agent;
  if (worker.out.done()) {
    report_here(FindingKind::kNests, agent, "has more results than the nest they are stored by");
    return false;
  }
  const std::int64_t end = ++worker.results * op.out_words;
  while (!worker.out.done() && worker.out.position() < end) {
    const std::int64_t word = worker.out.address() >> 2;
    const bool is_row = worker.out_shape.stride[0] == 4 && (op.out.buffer_stride == 0 || op.out.buffer_level > 0);
    const std::int64_t words = is_row ? std::min(worker.out.run(), end - worker.out.position()) : 1;
    PlaceLog& log = *tile.narrow;
    const bool is_within = log.holds(word) && log.holds(word + words - 1);
    if (words > 1 && is_within && log.knows_writes(word, words, agent) && log.knows_reads(word, words, agent)) {
      statistics_.writes += words;
      log.note_writes(word, words, agent);
      std::fill_n(tile.narrow_written.begin() + word, words, std::uint8_t{1});
      worker.out.advance(words);
    } else {
      write_word(tile, word, agent, true);
      worker.out.advance();
    }
  }
  return true;
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
    const std::uint64_t cells = cell_mask(op);
    all_written &= (read_line(tile, worker.param.address() >> 2, agent, kTensorReader) & cells) == cells;
  }
  if (isa::ends_result(op, opcode, worker.first, worker.psum)) {
    all_written &= read_scaling(tile, worker, op);
    if (op.has_zero_line && opcode == isa::Opcode::kMultiplyAdd) {
      const std::int64_t pass =
          worker.first.position() / op.loops.pass_length(op.scaling_level) + worker.phases.scaling;
      read_line(tile, op.zero_line + op.zero_line_step * (pass & 1), agent, kTensorReader);
    }
    if (opcode == isa::Opcode::kResample) read_resampled(tile, worker, op);
    if (op.sums_are_results()) write_line(tile, worker.psum.address() >> 2, agent, ~std::uint64_t{0});
    if (!store_result(tile, worker, op)) return false;
  }
  if (!all_written) ++worker.steps_of_nothing;
  return true;
}

bool Walk::tensor(Worker& worker, const isa::TensorOperation& op) {
  const bool is_done = tensor_goes_on(tile_of_worker(worker), worker, op);
  note_steps_of_nothing(worker);
  return is_done;
}

bool Walk::tensor_goes_on(TileState& tile, Worker& worker, const isa::TensorOperation& op) {
  Agent& agent = *worker.agent;
  const isa::Opcode opcode = worker.operation->opcode;
  const bool uses_psum = op.group_level >= 0 || op.sums_are_results();
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, tile.counters, worker.first.position())) return false;
    // As many steps as can be looked at together, or one.
    std::int64_t steps = tensor_block(tile, worker, op);
    const bool is_block = steps > 0;
    const auto go_on = [&](isa::NestCursor& cursor) {
      steps > cursor.run() ? cursor.seek(cursor.position() + steps) : cursor.advance(steps);
    };
    if (!is_block) steps = tensor_steps(tile, worker, op);
    if (steps == 0) {
      steps = 1;
      if (!tensor_step(tile, worker, op)) return true;
    }
    if (!spend(steps)) return false;
    go_on(worker.first);
    if (opcode == isa::Opcode::kMultiplyAdd || opcode == isa::Opcode::kResample) go_on(worker.in);
    if (opcode != isa::Opcode::kResample) {
      go_on(worker.param);
      signal(agent, tile.counters[op.parameters.counter], worker.first_passes.up_to(worker.param.position()));
    }
    if (uses_psum) go_on(worker.psum);
    signal(agent, tile.counters[op.avdata.counter], worker.second_passes.up_to(worker.out.position()));
  }
  if (!worker.out.done()) report_here(FindingKind::kNests, agent, "has fewer results than the nest they are stored by");
  return true;
}

}  // namespace reef::audit
