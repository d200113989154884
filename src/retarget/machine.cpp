// SPDX-License-Identifier: Apache-2.0
// The scalar core, dispatch and fences, and the loop that lets every unit move.
#include "retarget/machine.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace reef::retarget {

namespace {

// The scalar units a fence's drain mask is known to name.
constexpr std::uint32_t kDrainInfeed = 1, kDrainPop = 4, kDrainOutfeed = 8;
constexpr std::uint32_t kAllTileUnits = (1u << kTileUnits) - 1;

int unit_of(isa::Opcode opcode) { return static_cast<int>(isa::info(opcode).unit); }

}  // namespace

void Tile::allocate() {
  if (!narrow.empty()) return;
  narrow.resize(kNarrowBytes + 8);
  wide.resize(kWideLines * kLineBytes);
  line_version.assign(kWideLines, 1);
  recorded_version.resize(kWideLines * 4);
  recorded_run.resize(kWideLines * 4);
}

bool Machine::may_step(const std::vector<isa::Wait>& waits, const isa::NestCursor& walk,
                       std::span<const std::uint16_t> counters) {
  for (const isa::Wait& wait : waits) {
    if (!walk.begins_pass(wait.level)) continue;
    if (wait.counter >= counters.size()) return false;
    const auto needed =
        static_cast<std::uint32_t>(wait.threshold) + wait.increment * static_cast<std::uint32_t>(walk.pass(wait.level));
    if (!isa::has_reached(counters[wait.counter], needed)) return false;
  }
  return true;
}

void Machine::count(Tile& tile, const isa::Signal& signal, const isa::NestCursor& walk) {
  if (signal.enabled) tile.counters[signal.counter] += static_cast<std::uint16_t>(walk.ended(signal.level));
}

void Machine::count_ring(int channel, std::int64_t passes) {
  const auto counter = static_cast<std::size_t>(isa::TileCounter::kRingProducerA) + static_cast<std::size_t>(channel);
  for (const auto& tile : tiles_) tile->counters[counter] += static_cast<std::uint16_t>(passes);
  scalar_counters_[static_cast<std::size_t>(isa::ScalarCounter::kRingProducerA) + static_cast<std::size_t>(channel)] +=
      static_cast<std::uint16_t>(passes);
}

Status Machine::place(Status status, std::uint32_t instruction) const {
  return status.in(
      fmt::format("instruction {} ({})", instruction, isa::info(job_->program[instruction].opcode).mnemonic));
}

bool Machine::fence_passes(const isa::ScalarFence& fence) {
  for (int t = 0; fence.await_notify && t < kTiles; ++t) {
    if ((fence.notify_tiles >> t & 1) != 0 && notifications_[static_cast<std::size_t>(t)] == 0) return false;
  }
  for (const isa::Wait& wait : fence.waits) {
    const std::uint16_t difference =
        static_cast<std::uint16_t>(scalar_counters_[wait.counter] - static_cast<std::uint32_t>(wait.threshold));
    if (static_cast<std::int16_t>(difference) < 0) return false;
  }
  if ((fence.drain & kDrainInfeed) != 0 && !host_[kInfeedUnit].idle()) return false;
  if ((fence.drain & kDrainPop) != 0 && !host_[kPopUnit].idle()) return false;
  if ((fence.drain & kDrainOutfeed) != 0 && !host_[kOutfeedUnit].idle()) return false;
  for (int t = 0; fence.await_notify && t < kTiles; ++t) {
    if ((fence.notify_tiles >> t & 1) != 0) --notifications_[static_cast<std::size_t>(t)];
  }
  for (int k = 0; k < isa::kScalarCounterCount; ++k) {
    if ((fence.reset >> k & 1) != 0) {
      scalar_counters_[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(fence.reset_to);
    }
  }
  return true;
}

// Branches are not taken: every instruction is executed once, in the order of the program. Loops (recurrent networks)
// thereby run once, which is all that following bytes needs.
bool Machine::scalar_core_step() {
  while (next_ < job_->program.size()) {
    const isa::Operation& instruction = job_->program[next_];
    const auto index = static_cast<std::uint32_t>(next_);
    if (instruction.tiles != 0) {
      for (int t = 0; t < kTiles; ++t) {
        if ((instruction.tiles >> t & 1) == 0) continue;
        tiles_[static_cast<std::size_t>(t)]->dispatch.push_back(index);
        if (instruction.opcode != isa::Opcode::kTileFence) tiles_[static_cast<std::size_t>(t)]->allocate();
      }
    } else if (const auto* fence = std::get_if<isa::ScalarFence>(&instruction.code)) {
      if (!fence_passes(*fence)) return false;
    } else if (std::holds_alternative<isa::Infeed>(instruction.code)) {
      host_[kInfeedUnit].queue.push_back(index);
    } else if (std::holds_alternative<isa::Pop>(instruction.code)) {
      host_[kPopUnit].queue.push_back(index);
    } else if (std::holds_alternative<isa::Outfeed>(instruction.code)) {
      host_[kOutfeedUnit].queue.push_back(index);
    } else {
      ++next_;
      continue;  // scalar code
    }
    ++next_;
    return true;
  }
  return false;
}

bool Machine::tile_is_idle(const Tile& tile, std::uint32_t units) const {
  for (int u = 0; u < kTileUnits; ++u) {
    if ((units >> u & 1) != 0 && !tile.units[static_cast<std::size_t>(u)].idle()) return false;
  }
  return true;
}

bool Machine::dispatch(Tile& tile) {
  bool moved = false;
  while (!tile.dispatch.empty()) {
    const std::uint32_t index = tile.dispatch.front();
    const isa::Operation& instruction = job_->program[index];
    if (const auto* fence = std::get_if<isa::TileFence>(&instruction.code)) {
      if (!tile_is_idle(tile, fence->drain)) return moved;
      for (std::size_t u = 0; u < tile.units.size(); ++u) {
        if ((fence->restarts() >> u & 1) != 0) tile.units[u].phase = {};
      }
      for (int k = 0; k < isa::kTileCounterCount; ++k) {
        if ((fence->reset >> k & 1) != 0) {
          tile.counters[static_cast<std::size_t>(k)] = static_cast<std::uint16_t>(fence->reset_to);
        }
      }
      if (fence->notify) ++notifications_[static_cast<std::size_t>(tile.number)];
    } else {
      tile.units[static_cast<std::size_t>(unit_of(instruction.opcode))].queue.push_back(index);
    }
    tile.dispatch.pop_front();
    moved = true;
  }
  return moved;
}

Result<bool> Machine::run_unit(Tile& tile, int unit_index) {
  Unit& unit = tile.units[static_cast<std::size_t>(unit_index)];
  bool moved = false;
  while (!unit.idle()) {
    if (!unit.running) {
      unit.running = std::make_unique<Running>();
      unit.running->instruction = unit.queue.front();
      unit.running->code = &job_->program[unit.queue.front()];
      unit.queue.pop_front();
      moved = true;
    }
    const std::uint32_t instruction = unit.running->instruction;
    Result<bool> stepped = false;
    switch (static_cast<isa::Unit>(unit_index)) {
      case isa::Unit::kTensor:
        stepped = run_tensor(tile, unit);
        break;
      case isa::Unit::kWideToNarrow:
        stepped = run_to_narrow(tile, unit);
        break;
      case isa::Unit::kRingSend:
        stepped = run_ring_send(tile, unit);
        break;
      case isa::Unit::kRingReceiveA:
      case isa::Unit::kRingReceiveB:
        stepped = run_ring_receive(tile, unit);
        break;
      case isa::Unit::kNarrowToWide:
        stepped = run_to_wide(tile, unit);
        break;
      default:
        stepped = run_mesh(tile, unit, unit_index - static_cast<int>(isa::Unit::kMeshSouth));
    }
    if (!stepped.ok()) return place(stepped.status(), instruction);
    REEF_RETURN_IF_ERROR(out_of_time_);
    if (steps_left_ < 0) {
      return make_error(StatusCode::kResourceExhausted, "the program takes more steps than any compiled program known");
    }
    moved = moved || *stepped;
    if (unit.running) return moved;  // waits for something
  }
  return moved;
}

Result<bool> Machine::sweep() {
  bool moved = false;
  for (const auto& tile : tiles_) {
    if (!tile->dispatch.empty()) moved = dispatch(*tile) || moved;
  }
  for (const auto& tile : tiles_) {
    for (int u = 0; u < kTileUnits; ++u) {
      if (tile->units[static_cast<std::size_t>(u)].idle()) continue;
      REEF_ASSIGN_OR_RETURN(const bool unit_moved, run_unit(*tile, u));
      moved = moved || unit_moved;
    }
  }
  REEF_ASSIGN_OR_RETURN(const bool fed, run_infeed());
  REEF_ASSIGN_OR_RETURN(const bool popped, run_pop());
  REEF_ASSIGN_OR_RETURN(const bool sent, run_outfeed());
  return moved || fed || popped || sent;
}

bool Machine::look_at_budget() {
  constexpr std::int64_t kStepsBetweenLooks = 1 << 12;
  next_look_ = steps_left_ - kStepsBetweenLooks;
  out_of_time_ = budget_.check("following a compiled program");
  if (!out_of_time_.ok()) steps_left_ = -1;
  return out_of_time_.ok();
}

std::string Machine::stuck_message() const {
  std::vector<std::string> waiting;
  for (const auto& tile : tiles_) {
    for (const Unit& unit : tile->units) {
      if (unit.idle() || waiting.size() >= 4) continue;
      const std::uint32_t index = unit.running ? unit.running->instruction : unit.queue.front();
      waiting.push_back(fmt::format("instruction {} ({}) on tile {}", index,
                                    isa::info(job_->program[index].opcode).mnemonic, tile->number));
    }
  }
  for (const HostQueue& queue : host_) {
    if (queue.idle()) continue;
    const std::uint32_t index = queue.running ? queue.running->instruction : queue.queue.front();
    waiting.push_back(fmt::format("instruction {} ({})", index, isa::info(job_->program[index].opcode).mnemonic));
  }
  return fmt::format(
      "the program stops at instruction {} of {}: {}", next_, job_->program.size(),
      waiting.empty() ? "a fence is never passed" : fmt::format("{} wait forever", fmt::join(waiting, ", ")));
}

Status Machine::run(const Job& job) {
  job_ = &job;
  if (tiles_.empty()) {
    for (int t = 0; t < kTiles; ++t) {
      tiles_.push_back(std::make_unique<Tile>());
      tiles_.back()->number = t;
    }
  }
  constexpr std::array<std::size_t, 3> kBufferBytes = {chip::kParameterFifoUnits * chip::kParameterFifoUnitBytes,
                                                       chip::kActivationFifoUnits * chip::kActivationFifoUnitBytes,
                                                       chip::kLoopBackBufferWords * 4};
  for (std::size_t k = 0; k < buffers_.size(); ++k) buffers_[k].assign(kBufferBytes[k], 0);
  next_ = next_transfer_ = sent_at_ = outgoing_at_ = 0;
  parameters_fed_ = transfer_at_ = 0;
  sent_.clear();
  sent_marks_.clear();
  activations_.clear();
  outputs_.clear();
  traces_.clear();
  trace_of_.assign(job.program.size(), -1);
  scratch_.assign(static_cast<std::size_t>(job.scratch_bytes), 0);
  while (true) {
    REEF_ASSIGN_OR_RETURN(const bool moved, sweep());
    if (!moved && !scalar_core_step()) break;
  }
  bool is_idle = next_ >= job.program.size() && host_[0].idle() && host_[1].idle() && host_[2].idle();
  for (const auto& tile : tiles_) is_idle = is_idle && tile->dispatch.empty() && tile_is_idle(*tile, kAllTileUnits);
  if (!is_idle) return invalid_input("{}", stuck_message());
  attribute_outputs();
  return ok_status();
}

std::vector<TensorOpTrace> Machine::take_traces() {
  for (TensorOpTrace& trace : traces_) {
    for (Sources* sources : {&trace.input, &trace.parameters, &trace.biases, &trace.multipliers, &trace.zero_points}) {
      sources->finish();
    }
  }
  std::sort(traces_.begin(), traces_.end(),
            [](const TensorOpTrace& a, const TensorOpTrace& b) { return a.instruction < b.instruction; });
  return std::move(traces_);
}

}  // namespace reef::retarget
