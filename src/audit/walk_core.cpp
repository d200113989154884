// SPDX-License-Identifier: Apache-2.0
// The scalar core: its way through the program, what it hands out, its fences and the transfers it asks for.
#include <algorithm>

#include <fmt/format.h>

#include "audit/walk.h"
#include "isa/scalar.h"

namespace reef::audit {
namespace {

// Far more than any compiled program; each is remembered.
constexpr std::int64_t kMostCoreInstructions = 1 << 20;
constexpr std::size_t kWalkCoreMostQueued = 1 << 12, kMostTransfers = 1 << 16;

// Bits of a scalar fence's mask for infeed, pop, outfeed (bits 1 and 4 have no known unit).
constexpr std::array<std::uint32_t, 3> kDrainBits = {1u << 0, 1u << 2, 1u << 3};

enum Tag : std::uint32_t { kInput = 1, kParameters = 2, kOutput = 3, kInterrupt = 4 };

}  // namespace

// Until something went to a tile or a unit, or a fence holds it. False: nothing was done.
bool Walk::core_moves() {
  bool moved = false;
  std::int64_t queued = 0;
  for (const auto& tile : tiles_) {
    auto waiting = static_cast<std::int64_t>(tile->dispatch.size());
    for (const Worker& worker : tile->workers) waiting += static_cast<std::int64_t>(worker.queue.size());
    queued = std::max(queued, waiting);
  }
  statistics_.deepest_queue = std::max(statistics_.deepest_queue, queued);
  while (next_ < listing_->size() && !is_stopped()) {
    const std::size_t index = next_;
    const isa::Operation& operation = listing_->operations[index];
    std::size_t next = index + 1;
    bool handed_out = false;
    if (isa::is_tile_instruction(operation.opcode) || std::holds_alternative<isa::Infeed>(operation.code) ||
        std::holds_alternative<isa::Pop>(operation.code) || std::holds_alternative<isa::Outfeed>(operation.code)) {
      if (!core_hands_out(index)) return moved;
      handed_out = true;
    } else if (const auto* fence = std::get_if<isa::ScalarFence>(&operation.code)) {
      if (!core_passes(*fence)) return moved;
    } else if (operation.opcode == isa::Opcode::kScalar) {
      if (!core_executes(index)) return moved;
    } else if (operation.opcode == isa::Opcode::kRepeat) {
      if (!core_repeats(index, next)) return moved;
    } else if (operation.opcode == isa::Opcode::kBranch) {
      if (!core_branches(index, next)) return moved;
    } else if (operation.opcode == isa::Opcode::kHalt) {
      next = listing_->chunk_starts[static_cast<std::size_t>(listing_->chunks[index]) + 1];
    }
    if (++statistics_.instructions > kMostCoreInstructions) {
      stop(fmt::format("the scalar core takes more than {} instructions", kMostCoreInstructions));
    }
    if (!spend(1)) return moved;
    if (repeats_left_ > 0 && next == body_end_ && --repeats_left_ > 0) next = body_begin_;
    next_ = next;
    moved = true;
    if (handed_out) return true;
  }
  return moved;
}

bool Walk::core_repeats(std::size_t index, std::size_t& next) {
  const isa::Instruction& instruction = listing_->instructions[index];
  repeats_left_ = instruction.bits(isa::control::kRepeatCount);
  body_begin_ = next;
  const std::int64_t rows = instruction.bits(isa::control::kRepeatRows);
  const auto end = listing_->at_row(index, listing_->rows[index] + 1 + rows);
  if (!end) {
    stop(fmt::format("{}: the repeated body does not end at an instruction", listing_->site(index).to_string()));
    return false;
  }
  body_end_ = *end;
  if (repeats_left_ == 0) next = body_end_;
  return true;
}

bool Walk::core_branches(std::size_t index, std::size_t& next) {
  const isa::Instruction& instruction = listing_->instructions[index];
  if (instruction.test(isa::control::kBranchPredicated)) {
    const auto predicate = scalar_.predicate(instruction.bits(isa::control::kBranchPredicate));
    if (!predicate) {
      stop(fmt::format("{}: the scalar core's way depends on data", listing_->site(index).to_string()));
      return false;
    }
    if (*predicate != instruction.test(isa::control::kBranchSense)) return true;
  }
  const auto target = listing_->at_row(index, listing_->rows[index] + instruction.get(isa::control::kBranchOffset));
  if (!target) {
    stop(fmt::format("{}: the branch does not lead to an instruction", listing_->site(index).to_string()));
    return false;
  }
  next = *target;
  return true;
}

bool Walk::core_executes(std::size_t index) {
  const BundleEffects effects = scalar_.execute(listing_->instructions[index]);
  const auto here = [&] { return listing_->site(index).to_string(); };
  if (effects.is_undecided) {
    stop(fmt::format("{}: whether the bundle stores something depends on data", here()));
    return false;
  }
  Agent& core = agent(kCoreAgent);
  const bool is_logged = effects.read >= 0 || effects.written >= 0 || !effects.error.empty();
  if (is_logged) core.begin_instruction(static_cast<std::uint32_t>(index));
  if (!effects.error.empty()) {
    report_here(FindingKind::kAddress, core, effects.error);
    is_broken_ = true;
    return false;
  }
  core.tick();
  if (effects.read >= 0) read(*scalar_memory_, effects.read, core, 0);
  if (effects.written >= 0) write(*scalar_memory_, effects.written, core);
  if (effects.pushes) give_host(4);
  if (effects.issues && (!effects.bytes.is_known() || !effects.tag.is_known())) {
    stop(fmt::format("{}: size or kind of the transfer depends on data", here()));
    return false;
  }
  if (effects.issues) core_issues(effects);
  return true;
}

void Walk::core_issues(const BundleEffects& effects) {
  Agent& core = agent(kCoreAgent);
  const std::int64_t bytes = effects.bytes.bits;
  switch (effects.tag.bits) {
    case kInput:
    case kParameters: {
      auto& transfers = incoming_[effects.tag.bits == kInput ? 1 : 0];
      if (transfers.size() >= kMostTransfers) return stop("too many transfers are under way");
      transfers.push_back({bytes, outputs_asked_, core.stamp()});
      return wake(kInfeedActor);
    }
    case kOutput:
      if (outputs_.size() >= kMostTransfers) return stop("too many transfers are under way");
      outputs_.push_back(bytes);
      ++outputs_asked_;
      return give_host(0);
    case kInterrupt:
      return;
    default:
      core.begin_instruction(static_cast<std::uint32_t>(next_));
      report_here(FindingKind::kLeftOver, core,
                  fmt::format("asks for a transfer with unknown tag {}", effects.tag.bits));
  }
}

bool Walk::core_hands_out(std::size_t index) {
  const isa::Operation& operation = listing_->operations[index];
  Agent& core = agent(kCoreAgent);
  core.tick();
  Job job{static_cast<std::uint32_t>(index), 0, core.stamp()};
  if (!isa::is_tile_instruction(operation.opcode)) {
    const int unit = operation.opcode == isa::Opcode::kInfeed ? 0 : operation.opcode == isa::Opcode::kPop ? 1 : 2;
    auto& queue = host_workers_[at(unit)].queue;
    if (queue.size() >= kWalkCoreMostQueued)
      stop(fmt::format("more than {} instructions wait for one unit", kWalkCoreMostQueued));
    queue.push_back(std::move(job));
    wake(kInfeedActor + unit);
    return true;
  }
  ScalarValue tiles = ScalarValue::of(operation.tiles), base = ScalarValue::of(0);
  if (operation.tiles_register >= 0) tiles = scalar_.reg(static_cast<std::uint32_t>(operation.tiles_register));
  const auto* mover = std::get_if<isa::NarrowToWide>(&operation.code);
  if (mover != nullptr && mover->base_register >= 0)
    base = scalar_.reg(static_cast<std::uint32_t>(mover->base_register));
  if (!tiles.is_known() || !base.is_known()) {
    stop(fmt::format("{}: its tiles or its address depend on data", listing_->site(index).to_string()));
    return false;
  }
  job.base = base.bits;
  for (auto& tile : tiles_) {
    if ((tiles.bits >> tile->number & 1) == 0) continue;
    if (tile->dispatch.size() >= kWalkCoreMostQueued)
      stop(fmt::format("more than {} instructions wait for one tile", kWalkCoreMostQueued));
    tile->dispatch.push_back(job);
    wake(tile->number * kActorsPerTile + kDispatcher);
  }
  return true;
}

bool Walk::core_passes(const isa::ScalarFence& fence) {
  Agent& core = agent(kCoreAgent);
  const auto is_awaited = [&](int tile) { return fence.await_notify && (fence.notify_tiles >> tile & 1) != 0; };
  for (const auto& tile : tiles_) {
    if (is_awaited(tile->number) && tile->notifications.empty()) return false;
  }
  for (const isa::Wait& wait : fence.waits) {
    if (!scalar_counters_[wait.counter].has_reached(static_cast<std::uint32_t>(wait.threshold))) return false;
  }
  for (std::size_t unit = 0; unit < host_workers_.size(); ++unit) {
    if ((fence.drain & kDrainBits[unit]) != 0 && !host_workers_[unit].is_idle()) return false;
  }
  core.begin_instruction(static_cast<std::uint32_t>(next_));
  for (const auto& tile : tiles_) {
    if (!is_awaited(tile->number)) continue;
    core.learn(tile->notifications.front());
    tile->notifications.pop_front();
  }
  for (const isa::Wait& wait : fence.waits) {
    await(core, scalar_counters_[wait.counter], static_cast<std::uint32_t>(wait.threshold));
  }
  for (std::size_t unit = 0; unit < host_workers_.size(); ++unit) {
    if ((fence.drain & kDrainBits[unit]) != 0) core.learn(*host_workers_[unit].agent);
  }
  core.tick();
  for (std::size_t k = 0; k < scalar_counters_.size(); ++k) {
    if ((fence.reset >> k & 1) == 0) continue;
    set_counter(core, scalar_counters_[k], static_cast<std::uint16_t>(fence.reset_to));
  }
  return true;
}

}  // namespace reef::audit
