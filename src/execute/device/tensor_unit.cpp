// SPDX-License-Identifier: Apache-2.0
// Multiply-add, maximum, sum and resample: an instruction from its start to its end.
#include "execute/device/tensor_unit.h"

#include <algorithm>

#include "execute/device/waits.h"

namespace reef::device {

using isa::TensorOperation;

void TensorUnit::start() {
  run.first = isa::NestCursor(op.loops, 0);
  work.in = isa::NestCursor(op.in, unit.phases.first);
  work.param = isa::NestCursor(op.param, unit.phases.second);
  work.psum = isa::NestCursor(op.psum, 0);
  work.out = isa::NestCursor(op.out, unit.phases.out);
  if (plan.is_regular) {
    work.in_runs = isa::NestCursor(plan.in_runs, unit.phases.first);
    work.param_runs = isa::NestCursor(plan.param_runs, unit.phases.second);
    if (plan.outer_reduced != 0) work.slot_runs = isa::NestCursor(plan.slot_runs, 0);
  }
  work.are_stale = false;
  work.width = padded_cells(op.cells);
  work.weights_from = -1;
  work.weights.clear();
  work.wide_weights.clear();
  work.sums.assign(static_cast<std::size_t>(slots_of(op, opcode) * work.width), 0);
  work.unknown.clear();
  work.results = 0;
  run.started = true;
}

bool TensorUnit::advance(std::int64_t end) {
  const std::int64_t from = run.first.position(), from_out = work.out.position();
  // Regular instructions have no clips: all nests are at the same position.
  const std::int64_t from_param = plan.is_regular ? from : work.param.position();
  while (!run.first.done() && run.first.position() < end) {
    const std::int64_t position = run.first.position();
    std::int64_t next = end;
    if (plan.is_regular) {
      const std::int64_t begun = position % plan.run_steps;
      if (begun == 0 && end - position >= plan.run_steps) {
        const std::int64_t runs = advance_by_runs(end);
        if (!chip.failure_.ok()) return false;
        if (runs > 0) {
          run.first.seek(position + runs * plan.run_steps);
          work.are_stale = true;
          continue;
        }
      }
      next = std::min(end, position - begun + plan.run_steps);
    }
    if (!advance_by_steps(next)) return false;
  }
  if (!chip.spend(run.first.position() - from)) return false;
  const std::int64_t to_param = plan.is_regular ? run.first.position() : work.param.position();
  chip.count(tile, op.avdata, signalled(op.avdata, op.out, from_out, work.out.position()));
  if (opcode != isa::Opcode::kResample) {
    chip.count(tile, op.parameters, signalled(op.parameters, op.param, from_param, to_param));
  }
  if (chip.observer_ != nullptr) {
    chip.observer_->computed(
        {&tile, &run, from, run.first.position(), from_param, to_param, from_out, work.out.position()});
  }
  return true;
}

void TensorUnit::finish() {
  unit.phases.scaling += op.loops.passes(op.scaling_level);
  unit.phases.out += op.out.buffer_passes();
  chip.finish(tile, unit, &op.in, &op.param);
}

void Chip::note_unknown() {
  if (first_unknown_.empty()) first_unknown_ = fmt::format("{} of tile {}", place(failing_index_), failing_tile_);
}

bool Chip::tensor(Tile& tile, Unit& unit) {
  Running& run = *unit.running;
  const auto& op = std::get<TensorOperation>(run.operation->code);
  if (!unit.tensor) unit.tensor = std::make_shared<TensorRun>();
  TensorUnit work{*this, tile, unit, run, *unit.tensor, op, program_->plans[run.index], run.operation->opcode};
  if (!run.started) work.start();
  const std::int64_t end = permitted_end(op.loops, op.waits, tile.counters, run.first.position());
  if (end <= run.first.position()) return false;
  if (!work.advance(end)) return false;
  if (run.first.done()) {
    if (!unit.tensor->out.done()) return fail("its results do not fill the nest they are stored by");
    work.finish();
  }
  return true;
}

}  // namespace reef::device
