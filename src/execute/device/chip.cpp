// SPDX-License-Identifier: Apache-2.0
// The scalar core, dispatch and fences, and the loop that lets every unit move.
//
// The core hands out one tile instruction at a time and goes on when nothing else can move. On the chip it runs ahead;
// how far is not known. A program whose result depends on it is a race, and the slowest core keeps the order that
// programs of all compiler generations assume.
#include "execute/device/chip.h"

#include <algorithm>
#include <thread>

#include <fmt/ranges.h>

#include "isa/scalar.h"

namespace reef::device {
namespace {

struct BufferSize {
  std::size_t units = 0, unit_bytes = 0;
};

// Buffers of the scalar core: parameters, activations, loop-back.
std::array<BufferSize, 3> buffer_sizes(Belief doubted) {
  std::array<BufferSize, 3> sizes = {{{chip::kParameterFifoUnits, chip::kParameterFifoUnitBytes},
                                      {chip::kActivationFifoUnits, chip::kActivationFifoUnitBytes},
                                      {chip::kLoopBackBufferWords, 4}}};
  if (doubted == Belief::kParameterFifoSize) sizes[0].units /= 2;
  if (doubted == Belief::kActivationFifoSize) sizes[1].units /= 2;
  if (doubted == Belief::kParameterUnit) sizes[0].unit_bytes /= 2;
  if (doubted == Belief::kActivationUnit) sizes[1].unit_bytes *= 2;
  if (doubted == Belief::kLoopBackMoreThan128) sizes[2].units = chip::kLoopBackWindowWords;
  if (doubted == Belief::kLoopBack4096) sizes[2].units = 384;
  return sizes;
}

}  // namespace

Chip::Chip(const Options& options) : options_(options) {
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  threads_ = std::min(threads, chip::kTiles);
  for (int i = 0; i < chip::kTiles; ++i) {
    tiles_.push_back(std::make_unique<Tile>());
    tiles_.back()->number = i;
  }
  const auto sizes = buffer_sizes(options.doubted);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].unit_bytes = static_cast<std::int64_t>(sizes[i].unit_bytes);
    buffers_[i].states.resize(sizes[i].units);
    buffers_[i].bytes.resize(sizes[i].units * sizes[i].unit_bytes);
    buffers_[i].known.resize(sizes[i].units * sizes[i].unit_bytes);
  }
  core_.doubt(options.doubted);
  if (doubts(Belief::kComparisonWraps)) comparison_ = Comparison::kUnsigned;
}

bool Chip::fail(std::string message) {
  if (failure_.ok()) failure_ = Status(StatusCode::kInvalidInput, std::move(message));
  return false;
}

std::string Chip::place(std::uint32_t index) const { return program_->describe(index); }

bool Chip::look_at_limits() {
  next_look_ = std::min(options_.max_cycles, steps_ + kStepsBetweenLooks);
  if (!failure_.ok()) return false;
  if (steps_ > options_.max_cycles) {
    failure_ = make_error(StatusCode::kResourceExhausted,
                          "the program takes more than {} cycles; if it should, allow it more with --max-cycles",
                          options_.max_cycles);
  } else {
    failure_ = options_.budget.check("running a program on the virtual device");
  }
  return failure_.ok();
}

void Chip::count(Tile& tile, const isa::Signal& signal, std::int64_t passes) {
  if (passes == 0) return;
  auto& counter = tile.counters[signal.counter];
  counter = static_cast<std::uint16_t>(counter + passes);
  tile.signals[signal.counter] += passes;
  ++tile.version;
}

// Whose turn it is on the ring is known everywhere at once.
void Chip::count_ring(const Tile* sender, int channel, std::int64_t passes) {
  if (passes == 0) return;
  const auto tile_counter =
      static_cast<std::size_t>(isa::TileCounter::kRingProducerA) + static_cast<std::size_t>(channel);
  for (auto& tile : tiles_) {
    if (doubts(Belief::kTurnsEverywhere) && tile.get() != sender) continue;
    tile->counters[tile_counter] = static_cast<std::uint16_t>(tile->counters[tile_counter] + passes);
    tile->signals[tile_counter] += passes;
    ++tile->version;
  }
  auto& own = scalar_counters_[static_cast<std::size_t>(isa::ScalarCounter::kRingProducerA) +
                               static_cast<std::size_t>(channel)];
  own = static_cast<std::uint16_t>(own + passes);
}

bool Chip::fence_passes(const isa::ScalarFence& fence) {
  for (const auto& tile : tiles_) {
    const bool is_awaited = fence.await_notify && (fence.notify_tiles >> tile->number & 1) != 0;
    if (is_awaited && tile->notifications == 0) return false;
  }
  for (const isa::Wait& wait : fence.waits) {
    if (!isa::has_reached(scalar_counters_[wait.counter], static_cast<std::uint32_t>(wait.threshold))) return false;
  }
  for (std::size_t unit = 0; unit < host_units_.size(); ++unit) {
    if ((fence.drain & kDrainBits[unit]) != 0 && !host_units_[unit].idle()) return false;
  }
  for (const auto& tile : tiles_) {
    if (fence.await_notify && (fence.notify_tiles >> tile->number & 1) != 0) --tile->notifications;
  }
  for (std::size_t k = 0; k < scalar_counters_.size(); ++k) {
    if ((fence.reset >> k & 1) != 0) scalar_counters_[k] = static_cast<std::uint16_t>(fence.reset_to);
  }
  return true;
}

// Until an instruction went to a tile or a host unit, or a fence holds the core. True if anything was done.
bool Chip::scalar_core_moves() {
  bool moved = false;
  while (core_.next < program_->instructions.size()) {
    const std::size_t index = core_.next;
    const isa::Instruction& instruction = program_->instructions[index];
    const isa::Operation& operation = program_->operations[index];
    failing_tile_ = -1;
    failing_index_ = static_cast<std::uint32_t>(index);
    std::size_t next = index + 1;
    bool handed_out = false;
    std::optional<HostRequest> request;
    const std::uint64_t pushed_before = host_->pushed();
    if (isa::is_tile_instruction(operation.opcode)) {
      std::uint32_t tiles = operation.tiles;
      if (operation.tiles_register >= 0) tiles = core_.reg(static_cast<unsigned>(operation.tiles_register));
      std::uint32_t register_base = 0;
      const auto* mover = std::get_if<isa::NarrowToWide>(&operation.code);
      if (mover != nullptr && mover->base_register >= 0) {
        register_base = core_.reg(static_cast<unsigned>(mover->base_register));
      }
      for (auto& tile : tiles_) {
        if ((tiles >> tile->number & 1) == 0) continue;
        if (tile->dispatch.size() >= kMaxQueuedInstructions) {
          return fail(fmt::format("{} instructions wait for tile {}", tile->dispatch.size(), tile->number));
        }
        tile->dispatch.push_back({static_cast<std::uint32_t>(index), register_base});
        ++tile->version;
      }
      if (observer_ != nullptr) observer_->handed_out(index, tiles);
      handed_out = true;
    } else if (const auto* fence = std::get_if<isa::ScalarFence>(&operation.code)) {
      if (!fence_passes(*fence)) return moved;
      if (observer_ != nullptr) observer_->passed_fence(index, *fence);
    } else if (!std::holds_alternative<std::monostate>(operation.code)) {
      const HostUnitId unit = operation.opcode == isa::Opcode::kInfeed ? HostUnitId::kInfeed
                              : operation.opcode == isa::Opcode::kPop  ? HostUnitId::kPop
                                                                       : HostUnitId::kOutfeed;
      auto& queue = host_unit(unit).queue;
      if (queue.size() >= kMaxQueuedInstructions) return fail("too many transfers wait between host and ring");
      queue.push_back(static_cast<std::uint32_t>(index));
      if (observer_ != nullptr) observer_->handed_to_host_unit(index, unit);
      handed_out = true;
    } else if (operation.opcode == isa::Opcode::kScalar) {
      if (!spend(1)) return false;
      const Status status = core_.execute(instruction, *host_, request);
      if (!status.ok()) return fail(status.message());
    } else if (operation.opcode == isa::Opcode::kRepeat) {
      if (!look_at_limits()) return false;  // its turns may be steps of nobody
      core_.repeats_left = instruction.bits(isa::control::kRepeatCount) + (doubts(Belief::kRepeatCount) ? 1 : 0);
      core_.body_begin = next;
      const std::int64_t rows = instruction.bits(isa::control::kRepeatRows);
      const auto end = program_->at_row(program_->chunk_of[index], program_->row_of[index] + 1 + rows);
      if (!end) return fail("the repeated body does not end at an instruction");
      core_.body_end = *end;
      if (core_.repeats_left == 0) next = core_.body_end;
    } else if (operation.opcode == isa::Opcode::kBranch) {
      const bool taken = !instruction.test(isa::control::kBranchPredicated) ||
                         core_.predicate(instruction.bits(isa::control::kBranchPredicate)) ==
                             instruction.test(isa::control::kBranchSense);
      if (!spend(1)) return false;
      if (taken) {
        const std::int64_t from = program_->row_of[index] + (doubts(Belief::kBranchFromItself) ? 1 : 0);
        const auto target =
            program_->at_row(program_->chunk_of[index], from + instruction.get(isa::control::kBranchOffset));
        if (!target) return fail("the branch does not lead to an instruction");
        next = *target;
      }
    } else if (operation.opcode == isa::Opcode::kHalt) {
      next = program_->chunk_starts[program_->chunk_of[index] + 1];
    }
    if (observer_ != nullptr && !handed_out && !std::holds_alternative<isa::ScalarFence>(operation.code)) {
      observer_->executed(index, request, static_cast<std::size_t>(host_->pushed() - pushed_before));
    }
    if (core_.repeats_left > 0 && next == core_.body_end && --core_.repeats_left > 0) next = core_.body_begin;
    core_.next = next;
    moved = true;
    if (handed_out) return true;
  }
  return moved;
}

std::uint32_t Chip::restarted_by(const isa::TileFence& fence) const {
  constexpr std::uint32_t kAllUnits = (1u << chip::kTileUnits) - 1;
  const bool is_full = fence.drain == kAllUnits, is_tensor = fence.drain == isa::TileFence::kTensorUnitOnly;
  if (doubts(Belief::kFullFence) && is_full) return 0;
  if (doubts(Belief::kPartialFence) && !is_full) return 0;
  if (doubts(Belief::kTensorFence) && is_tensor) return fence.drain;
  return fence.restarts();
}

bool Chip::dispatch(Tile& tile) {
  bool moved = false;
  while (!tile.dispatch.empty()) {
    const isa::Operation& operation = program_->operations[tile.dispatch.front().index];
    if (const auto* fence = std::get_if<isa::TileFence>(&operation.code)) {
      for (int u = 0; u < chip::kTileUnits; ++u) {
        if ((fence->drain >> u & 1) != 0 && !tile.units[at(u)].idle()) return moved;
      }
      const auto producer = static_cast<std::size_t>(isa::TileCounter::kRingProducerA);
      if (fence->await_producer_a &&
          !isa::has_reached(tile.counters[producer], static_cast<std::uint32_t>(fence->await_count)))
        return moved;
      if (fence->await_producer_b &&
          !isa::has_reached(tile.counters[producer + 1], static_cast<std::uint32_t>(fence->await_count)))
        return moved;
      for (std::size_t u = 0; u < tile.units.size(); ++u) {
        if ((restarted_by(*fence) >> u & 1) != 0) tile.units[u].phases = {};
      }
      for (std::size_t k = 0; k < tile.counters.size(); ++k) {
        if ((fence->reset >> k & 1) == 0) continue;
        tile.counters[k] = tile.set_to[k] = static_cast<std::uint16_t>(fence->reset_to);
        tile.signals[k] = 0;
      }
      if (fence->notify) ++tile.notifications;
      if (observer_ != nullptr) observer_->passed_tile_fence(tile, tile.dispatch.front().index, *fence);
    } else {
      const auto unit = static_cast<int>(isa::info(operation.opcode).unit);
      auto& queue = tile.units[at(unit)].queue;
      if (queue.size() >= kMaxQueuedInstructions) return moved;  // the dispatcher holds
      queue.push_back(tile.dispatch.front());
      if (observer_ != nullptr) observer_->dispatched(tile, unit, tile.dispatch.front().index);
    }
    tile.dispatch.pop_front();
    ++tile.version;
    moved = true;
  }
  return moved;
}

void Chip::start(Unit& unit, const isa::NestShape& in, const isa::NestShape& out) {
  Running& run = *unit.running;
  if (run.started) return;
  run.first = isa::NestCursor(in, unit.phases.first);
  run.second = isa::NestCursor(out, unit.phases.second);
  run.started = true;
}

void Chip::finish(Tile& tile, Unit& unit, const isa::NestShape* first, const isa::NestShape* second) {
  if (first != nullptr) unit.phases.first += first->buffer_passes();
  if (second != nullptr) unit.phases.second += second->buffer_passes();
  if (doubts(Belief::kBufferGoesOn)) unit.phases = {.scaling = unit.phases.scaling};
  if (observer_ != nullptr) observer_->finished(&tile, static_cast<int>(&unit - tile.units.data()), *unit.running);
  unit.running.reset();
  ++tile.version;
}

void Chip::take_up(Tile& tile, Unit& unit) {
  unit.running.emplace();
  unit.running->index = unit.queue.front().index;
  unit.running->register_base = unit.queue.front().register_base;
  unit.running->operation = &program_->operations[unit.queue.front().index];
  unit.queue.pop_front();
  if (observer_ != nullptr) observer_->started(&tile, static_cast<int>(&unit - tile.units.data()), *unit.running);
}

bool Chip::run_tile_unit(Tile& tile, int unit_index) {
  Unit& unit = tile.units[at(unit_index)];
  if (unit.idle() || unit.blocked_at == tile.version) return false;
  bool moved = false;
  while (!unit.idle() && failure_.ok()) {
    if (!unit.running) take_up(tile, unit);
    failing_tile_ = tile.number;
    failing_index_ = unit.running->index;
    const isa::OperationCode& code = unit.running->operation->code;
    bool stepped = false;
    if (const auto* send = std::get_if<isa::RingSend>(&code)) {
      stepped = ring_send(tile, unit, *send);
    } else if (const auto* receive = std::get_if<isa::RingReceive>(&code)) {
      stepped = ring_receive(tile, unit, *receive);
    } else if (const auto* to_wide = std::get_if<isa::NarrowToWide>(&code)) {
      stepped = narrow_to_wide(tile, unit, *to_wide);
    } else if (const auto* to_narrow = std::get_if<isa::WideToNarrow>(&code)) {
      stepped =
          to_narrow->to_scaling ? wide_to_scaling(tile, unit, *to_narrow) : wide_to_narrow(tile, unit, *to_narrow);
    } else if (const auto* across = std::get_if<isa::Mesh>(&code)) {
      stepped =
          mesh(tile, unit, *across, static_cast<chip::Direction>(unit_index - static_cast<int>(isa::Unit::kMeshSouth)));
    }
    if (!stepped) break;
    moved = true;
    if (options_.takes_line_by_line && std::holds_alternative<isa::RingReceive>(code)) {
      ++tile.version;  // it may not be blocked
      return true;
    }
  }
  unit.blocked_at = tile.version;
  return moved;
}

// Everything that can move moves until nothing can; then the core takes its next step.
bool Chip::sweep() {
  bool moved = false;
  for (auto& tile : tiles_) {
    const std::uint64_t version = tile->version;
    if (tile->settled_at == version) continue;
    if (dispatch(*tile)) moved = true;
    for (int u = 0; u < chip::kTileUnits && failure_.ok(); ++u) {
      if (u != static_cast<int>(isa::Unit::kTensor) && run_tile_unit(*tile, u)) moved = true;
    }
    if (tile->version == version) tile->settled_at = version;
  }
  if (failure_.ok() && run_tensor_units()) moved = true;
  if (!failure_.ok()) return false;
  if (run_infeed()) moved = true;
  if (run_pop()) moved = true;
  if (run_outfeed()) moved = true;
  return moved && failure_.ok();
}

void Chip::clear_queues() {
  const auto forget_lines = [&](MessageQueue<RingLine*>& lines) {
    for (; !lines.empty(); lines.pop_front()) ring_lines_.leave(lines.front());
  };
  for (auto& tile : tiles_) {
    for (Unit& unit : tile->units) {
      unit.queue.clear();
      unit.running.reset();
      unit.phases = {};
    }
    tile->dispatch.clear();
    for (auto& channel : tile->ring) forget_lines(channel);
    for (auto& link : tile->links) link.clear();
    tile->counters = {};
    tile->set_to = {};
    tile->signals = {};
    tile->notifications = 0;
    tile->table.reset();
  }
  for (HostUnit& unit : host_units_) {
    unit.queue.clear();
    unit.running.reset();
  }
  scalar_counters_ = {};
  forget_lines(to_scalar_);
  to_scalar_byte_ = 0;
}

void Chip::begin(const Program& program, Host& host) {
  program_ = &program;
  host_ = &host;
  core_.restart();
  steps_ = next_look_ = 0;
  has_time_limit_ = options_.budget.has_time_limit();
  failure_ = ok_status();
  first_unknown_.clear();
  was_stopped_ = false;
  for (HostBuffer& buffer : buffers_) buffer.restart();
  touch_all();
  order_.seed(schedule_.seed);
  if (observer_ != nullptr) observer_->begins(program, *this);
}

Status Chip::advance() {
  bool moved = true;
  while (moved && failure_.ok()) {
    moved = schedule_.seed == 0 ? sweep() : sweep_in_another_order();
    if (!moved && failure_.ok()) moved = scalar_core_moves();
    if (observer_ != nullptr && observer_->wants_to_stop()) {
      was_stopped_ = true;
      break;
    }
  }
  return failure_;
}

void Chip::program_grew() {
  const auto look_up = [&](std::optional<Running>& running) {
    if (running) running->operation = &program_->operations[running->index];
  };
  for (auto& tile : tiles_) {
    for (Unit& unit : tile->units) look_up(unit.running);
  }
  for (HostUnit& unit : host_units_) look_up(unit.running);
}

bool Chip::is_at_end() const {
  if (core_.next < program_->instructions.size()) return false;
  const auto is_idle = [](const auto& unit) { return unit.idle(); };
  return std::all_of(host_units_.begin(), host_units_.end(), is_idle) &&
         std::all_of(tiles_.begin(), tiles_.end(), [&](const auto& tile) {
           return tile->dispatch.empty() && std::all_of(tile->units.begin(), tile->units.end(), is_idle);
         });
}

Status Chip::finish() {
  const Status ending = was_stopped_ ? failure_ : how_it_ended();
  if (was_stopped_ || !ending.ok()) clear_queues();
  return ending;
}

Status Chip::run(const Program& program, Host& host) {
  begin(program, host);
  (void)advance();  // finish() says how it went
  return finish();
}

void Chip::power_cycle() {
  clear_queues();
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    tiles_[i] = std::make_unique<Tile>();
    tiles_[i]->number = static_cast<int>(i);
  }
  core_ = ScalarCore();
  core_.doubt(options_.doubted);
}

Status Chip::how_it_ended() const {
  if (!failure_.ok()) {
    std::string where = place(failing_index_);
    if (failing_tile_ >= 0) where += fmt::format(" of tile {}", failing_tile_);
    return failure_.code() == StatusCode::kResourceExhausted ? failure_ : failure_.in(where);
  }
  if (std::string message = standstill(); !message.empty())
    return Status(StatusCode::kInvalidInput, std::move(message));
  if (std::string message = left_over(); !message.empty()) return Status(StatusCode::kInvalidInput, std::move(message));
  return ok_status();
}

}  // namespace reef::device
