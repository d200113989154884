// SPDX-License-Identifier: Apache-2.0
// Multiply-add, maximum, sum and resample: an instruction from its start to its end.
#include "execute/device/tensor_unit.h"

#include <algorithm>
#include <utility>

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
        if (!effects.failure.ok()) return false;
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
  effects.steps += run.first.position() - from;
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
  if (!doubts(Belief::kScalingGoesOn)) unit.phases.scaling += op.loops.passes(op.scaling_level);
  unit.phases.out += op.out.buffer_passes();
  chip.finish(tile, unit, &op.in, &op.param);
}

bool TensorUnit::fail(std::string message) const {
  if (effects.failure.ok()) effects.failure = Status(StatusCode::kInvalidInput, std::move(message));
  return false;
}

void TensorUnit::note_unknown() const {
  if (!effects.first_unknown) effects.first_unknown = run.index;
}

const Line* TensorUnit::load_line(std::int64_t address) const {
  if (WideMemory::holds(address)) return &tile.wide.line(address);
  fail(fmt::format("reads line {} of wide memory, which has {}", address, chip::kWideLines));
  return nullptr;
}

bool Chip::tensor(Tile& tile, Unit& unit, TensorEffects& effects) {
  Running& run = *unit.running;
  const auto& op = std::get<TensorOperation>(run.operation->code);
  if (!unit.tensor) unit.tensor = std::make_shared<TensorRun>();
  TensorUnit work{*this, tile, unit, run, *unit.tensor, op, program_->plans[run.index], run.operation->opcode, effects};
  if (!run.started) work.start();
  const std::int64_t from = run.first.position();
  const std::int64_t end = std::min(permitted_end(op.loops, op.waits, tile.counters, from, comparison_),
                                    from + std::max<std::int64_t>(effects.most_steps - effects.steps, 1));
  if (end <= from) return false;
  if (!work.advance(end)) return false;
  if (run.first.done()) {
    if (!unit.tensor->out.done()) return work.fail("its results do not fill the nest they are stored by");
    work.finish();
  }
  return effects.steps < effects.most_steps;
}

void Chip::run_tensor_unit(Tile& tile, TensorEffects& effects) {
  Unit& unit = tile.units[at(isa::Unit::kTensor)];
  while (!unit.idle() && effects.failure.ok()) {
    if (!unit.running) take_up(tile, unit);
    effects.index = unit.running->index;
    if (const auto* table = std::get_if<isa::LoadActivation>(&unit.running->operation->code)) {
      tile.table = numeric::ChipTable{table->segments, table->breaks};
      if (observer_ != nullptr) observer_->loaded_table(tile, *unit.running);
      finish(tile, unit, nullptr, nullptr);
    } else if (const std::int64_t before = effects.steps; !tensor(tile, unit, effects)) {
      effects.moved = effects.moved || effects.steps > before;
      break;
    }
    effects.moved = true;
  }
  // Where it only stopped so that someone may look at the limits, it goes on by itself.
  if (effects.steps < effects.most_steps) unit.blocked_at = tile.version;
}

std::int64_t Chip::tensor_work(Tile& tile) const {
  Unit& unit = tile.units[at(isa::Unit::kTensor)];
  if (unit.idle() || unit.blocked_at == tile.version) return 0;
  const std::uint32_t index = unit.running ? unit.running->index : unit.queue.front().index;
  const auto* op = std::get_if<TensorOperation>(&program_->operations[index].code);
  if (op == nullptr) return 1;
  const std::int64_t from = unit.running && unit.running->started ? unit.running->first.position() : 0;
  const std::int64_t steps = permitted_end(op->loops, op->waits, tile.counters, from, comparison_) - from;
  if (steps <= 0) {
    if (!unit.running) return 1;  // it takes the instruction up
    unit.blocked_at = tile.version;
    return 0;
  }
  constexpr std::int64_t kNanosecondsPerStep = 6, kCellsPerNanosecond = 8;
  return steps * (kNanosecondsPerStep + op->cells / kCellsPerNanosecond);
}

// The tensor units of all tiles, at the same time if that pays.
bool Chip::run_tensor_units(std::uint32_t tiles) {
  std::array<Tile*, chip::kTiles> ready;
  std::size_t count = 0;
  std::int64_t work = 0;
  for (auto& tile : tiles_) {
    const std::int64_t tile_work = (tiles >> tile->number & 1) != 0 ? tensor_work(*tile) : 0;
    if (tile_work == 0) continue;
    ready[count++] = tile.get();
    work += tile_work;
  }
  const auto run = [&](std::int64_t i) {
    Tile& tile = *ready[at(i)];
    TensorEffects& effects = effects_[at(tile.number)];
    effects = {};
    effects.most_steps = most_steps_at_once() + 1;
    run_tensor_unit(tile, effects);
  };
  constexpr std::int64_t kWorthSharing = 100'000;  // nanoseconds, by trial: less of it gains nothing
  const bool are_shared = threads_ > 1 && observer_ == nullptr && count > 1 && work > kWorthSharing;
  if (are_shared) {
    if (pool_ == nullptr) pool_ = std::make_unique<ThreadPool>(threads_);
    pool_->parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t i, std::int64_t) { run(i); });
  } else {
    for (std::size_t i = 0; i < count; ++i) run(static_cast<std::int64_t>(i));
  }
  bool moved = false;
  for (std::size_t i = 0; i < count && failure_.ok(); ++i) {
    const int tile = ready[i]->number;
    const TensorEffects& effects = effects_[at(tile)];
    moved |= effects.moved;
    if (first_unknown_.empty() && effects.first_unknown) {
      first_unknown_ = fmt::format("{} of tile {}", place(*effects.first_unknown), tile);
    }
    if (!effects.failure.ok()) {
      failing_tile_ = tile;
      failing_index_ = effects.index;
      failure_ = effects.failure;
    } else {
      spend(effects.steps);
    }
  }
  return moved && failure_.ok();
}

}  // namespace reef::device
