// SPDX-License-Identifier: Apache-2.0
// The scalar core, dispatch, fences and counters in simulated time. Movers: timeline_moves.cpp. Arithmetic:
// timeline_tensor.cpp.
#include "execute/device/timeline.h"

#include <algorithm>

#include "execute/device/chip.h"
#include "execute/device/waits.h"

namespace reef::device {
namespace {

// Bounds for programs that no compiler made.
constexpr std::size_t kMostKept = 1 << 16, kMostSlices = 1 << 22;

std::vector<int> agents_of(int tile, std::initializer_list<isa::Unit> units) {
  std::vector<int> agents;
  for (const isa::Unit unit : units) agents.push_back(agent_of(tile, static_cast<int>(unit)));
  return agents;
}

}  // namespace

Timeline::Timeline(const TimelineOptions& options) : options_(options) {
  if (options_.timing.link == nullptr) options_.timing.link = chip::link_profiles().data();
  cycles_per_in_byte_ = options_.timing.clock_hz / options_.timing.link->in_bytes_per_second;
  cycles_per_out_byte_ =
      options_.timing.clock_hz / (options_.timing.link->out_bytes_per_second * options_.timing.reading.output_speed);
}

Timeline::~Timeline() = default;

void Timeline::begins(const Program& program, const Chip& chip) {
  close_record();
  program_ = &program;
  agents_.clear();
  for (int i = 0; i < kAgents; ++i) agents_.emplace_back().knowledge = Knowledge(i);
  tiles_ = std::vector<TileState>(chip::kTiles);
  for (int t = 0; t < chip::kTiles; ++t) {
    TileState& tile = tiles_[at(t)];
    for (std::size_t k = 0; k < tile.counters.size(); ++k) tile.counters[k].begin(chip.tile(t).counters[k]);
    if (!options_.find_races) continue;
    using enum isa::Unit;
    tile.narrow = std::make_unique<AccessLog>(
        "narrow memory, word", kNarrowWords,
        agents_of(t, {kTensor, kNarrowToWide, kMeshSouth, kMeshWest, kMeshNorth, kMeshEast}));
    tile.wide = std::make_unique<AccessLog>("wide memory, line", chip::kWideLines,
                                            agents_of(t, {kTensor, kWideToNarrow, kRingSend}));
    tile.scaling = std::make_unique<AccessLog>("scaling memory, step", ScalingMemory::kSteps, agents_of(t, {kTensor}));
  }
  if (options_.find_races) {
    const std::vector<int> pop = {kFirstHostAgent + static_cast<int>(HostUnitId::kPop)};
    fifos_[0] = std::make_unique<AccessLog>("parameter FIFO, unit", chip::kParameterFifoUnits, pop);
    fifos_[1] = std::make_unique<AccessLog>("activation FIFO, unit", chip::kActivationFifoUnits, pop);
    fifos_[2] = std::make_unique<AccessLog>("loop-back FIFO, word", chip::kLoopBackBufferWords, pop);
  }
  for (std::size_t k = 0; k < scalar_counters_.size(); ++k) scalar_counters_[k].begin(chip.scalar_counters()[k]);
  to_scalar_.clear();
  last_to_scalar_ = {};
  ring_sender_ = {};
  to_scalar_byte_ = 0;
  inputs_.clear();
  parameters_.clear();
  taken_.clear();
  sent_in_ = 0;
  outputs_.clear();
  output_bytes_unclaimed_ = outputs_asked_ = 0;
  outputs_complete_.clear();
  races_.clear();
  slices_.clear();
  link_slices_.clear();
  totals_ = {};
  ring_ = {};
  Moment start;
  start.spend(Spent::kHost, options_.timing.link->overhead_us * 1e-6 * options_.timing.clock_hz);
  core().moment = link_in_ = link_out_ = start;
  chunk_ = ~std::size_t{0};
}

Stamp Timeline::stamp_of(Agent& agent) {
  Stamp stamp{agent.moment, number_of(agent), agent.knowledge.now(), nullptr};
  if (options_.find_races) stamp.clocks = agent.knowledge.snapshot();
  return stamp;
}

void Timeline::receive(Agent& agent, const Stamp& stamp) {
  agent.moment.wait_for(stamp.moment);
  if (options_.find_races) agent.knowledge.learn(stamp.agent, stamp.clock, stamp.clocks);
}

void Timeline::work(Agent& agent, Spent kind, double cycles) {
  agent.moment.spend(kind, cycles);
  agent.busy += cycles;
  agent.slice.busy += cycles;
}

void Timeline::wait_for_counter(Agent& agent, CounterHistory& counter, std::uint32_t needed) {
  Stamp stamp;
  note_use(agent, counter, false, needed);
  if (counter.find(counter.number_of(needed), stamp)) {
    receive(agent, stamp);
  } else if (counter.had_reached_when_set(needed) && !counter.had_reached_before_set(needed)) {
    receive(agent, counter.setter);
  }
}

void Timeline::pass_gate(Agent& agent, Gate& gate, const isa::NestShape& nest, std::span<const isa::Wait> waits,
                         std::span<CounterHistory> counters, std::int64_t position) {
  for (std::size_t i = 0; i < waits.size() && i < gate.passed.size(); ++i) {
    const isa::Wait& wait = waits[i];
    const WaitPasses passes = passes_of(nest, wait);
    const std::int64_t pass = std::min(position / passes.length, passes.count - 1);
    if (gate.passed[i] > pass || wait.counter >= counters.size()) continue;
    // With an increment of 0 all passes wait for the same.
    const bool is_known = wait.increment == 0 && gate.passed[i] > 0;
    gate.passed[i] = pass + 1;
    if (is_known) continue;
    wait_for_counter(agent, counters[wait.counter], needed_before(wait, pass));
  }
}

void Timeline::signal(Agent& agent, CounterHistory& counter, std::int64_t count, Spent kind) {
  if (count <= 0) return;
  note_use(agent, counter, true, 0);
  counter.add(stamp_of(agent), count, 0, 0, kind);
}

int Timeline::tile_of(const CounterHistory& counter) const {
  for (int t = 0; t < chip::kTiles; ++t) {
    const auto& counters = tiles_[at(t)].counters;
    if (&counter >= counters.data() && &counter < counters.data() + counters.size()) return t;
  }
  return -1;
}

std::string Timeline::name_of(const CounterHistory& counter) const {
  const int t = tile_of(counter);
  if (t < 0) return fmt::format("counter {}", isa::kScalarCounterNames[&counter - scalar_counters_.data()]);
  return fmt::format("counter {}", isa::kTileCounterNames[&counter - tiles_[at(t)].counters.data()]);
}

void Timeline::report_counter(Race::Kind kind, const CounterHistory& counter, const CounterHistory::User& first,
                              const CounterHistory::User& second) {
  races_.add({.kind = kind,
              .place = name_of(counter),
              .tile = tile_of(counter),
              .first_index = first.index,
              .second_index = second.index,
              .first_agent = first.agent,
              .second_agent = second.agent,
              .slack = second.time - first.time});
}

// A signal must not come before the counter is set, nor may a wait, if the value from before would have let it pass.
void Timeline::note_use(Agent& agent, CounterHistory& counter, bool signals, std::uint32_t needed) {
  if (!options_.find_races) return;
  const Stamp& setter = counter.setter;
  const CounterHistory::User user{
      number_of(agent), agent.knowledge.now(), agent.slice.index, agent.moment.time, signals, needed};
  const bool matters = signals || (counter.had_reached_before_set(needed) && !counter.had_reached_when_set(needed));
  if (matters && setter.clock != 0 && !agent.knowledge.knows(setter.agent, setter.clock)) {
    report_counter(Race::Kind::kCounterUse, counter,
                   {setter.agent, setter.clock, counter.setter_index, setter.moment.time, false, 0}, user);
  }
  counter.note_user(user);
}

// A signal must not be lost, nor a wait from before be left waiting. Setting a counter to the value it has does
// nothing.
void Timeline::set_counter(Agent& agent, CounterHistory& counter, std::uint16_t value) {
  const CounterHistory::User setting{
      number_of(agent), agent.knowledge.now(), agent.slice.index, agent.moment.time, false, 0};
  for (const CounterHistory::User& user : counter.users()) {
    if (!options_.find_races || agent.knowledge.knows(user.agent, user.clock)) continue;
    if (user.signals || !isa::has_reached(value, user.needed)) {
      report_counter(Race::Kind::kCounterSet, counter, user, setting);
    }
  }
  if (counter.value() == value) return;
  counter.set(value);
  counter.setter = stamp_of(agent);
  counter.setter_index = agent.slice.index;
}

void Timeline::signal_ring_producer(Agent& agent, int channel, std::int64_t count, Spent kind) {
  if (count <= 0) return;
  const auto k = static_cast<std::size_t>(isa::TileCounter::kRingProducerA) + static_cast<std::size_t>(channel);
  for (TileState& tile : tiles_) signal(agent, tile.counters[k], count, kind);
  signal(agent,
         scalar_counters_[static_cast<std::size_t>(isa::ScalarCounter::kRingProducerA) +
                          static_cast<std::size_t>(channel)],
         count, kind);
}

// ---- The scalar core ----

// Instructions cross the link chunk by chunk, behind what the program before them asked for.
void Timeline::begin_instruction_chunk(std::size_t chunk) {
  const std::size_t last = program_->chunk_starts[chunk + 1] - 1;
  const auto rows = program_->row_of[last] + isa::info(program_->operations[last].opcode).rows;
  const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * isa::kRowBytes;
  Moment arrival = link_in_;
  if (options_.timing.reading.instructions_in_turn) arrival.wait_for(core().moment);
  arrival.spend(Spent::kInstructions, static_cast<double>(bytes) * cycles_per_in_byte_);
  link_slices_.push_back({Spent::kInstructions, link_in_.time, arrival.time, bytes});
  link_in_ = arrival;
  totals_.instruction_bytes += bytes;
  core().moment.wait_for(arrival);
  chunk_ = chunk;
}

void Timeline::enter_chunk_of(std::size_t index) {
  if (program_->chunk_of[index] != chunk_) begin_instruction_chunk(program_->chunk_of[index]);
}

void Timeline::executed(std::size_t index, const std::optional<HostRequest>& request, std::size_t pushed) {
  enter_chunk_of(index);
  Agent& agent = core();
  agent.knowledge.tick();
  work(agent, Spent::kScalarCore, options_.timing.costs.scalar_instruction);
  if (pushed > 0) put(agent, pushed);
  if (!request) return;
  switch (request->purpose) {
    case Purpose::kInput:
      inputs_.push_back({Spent::kInput, request->bytes, stamp_of(agent), outputs_asked_});
      totals_.input_bytes += request->bytes;
      break;
    case Purpose::kParameters:
      parameters_.push_back({Spent::kParameters, request->bytes, stamp_of(agent), outputs_asked_});
      totals_.parameter_bytes += request->bytes;
      break;
    case Purpose::kOutput:
      outputs_.push_back(request->bytes);
      ++outputs_asked_;
      totals_.output_bytes += request->bytes;
      put(agent, 0);
      break;
    case Purpose::kInterrupt:
      break;
  }
}

void Timeline::passed_fence(std::size_t index, const isa::ScalarFence& fence) {
  enter_chunk_of(index);
  Agent& agent = core();
  agent.slice.index = static_cast<std::uint32_t>(index);
  for (int t = 0; t < chip::kTiles; ++t) {
    auto& notifications = tiles_[at(t)].notifications;
    if (!fence.await_notify || (fence.notify_tiles >> t & 1) == 0 || notifications.empty()) continue;
    receive(agent, notifications.front());
    notifications.pop_front();
  }
  for (const isa::Wait& wait : fence.waits) {
    wait_for_counter(agent, scalar_counters_[wait.counter], static_cast<std::uint32_t>(wait.threshold));
  }
  for (int unit = 0; unit < kHostUnits; ++unit) {
    if ((fence.drain & kDrainBits[at(unit)]) != 0) receive(agent, stamp_of(host_agent(unit)));
  }
  agent.knowledge.tick();
  work(agent, Spent::kScalarCore, options_.timing.costs.scalar_instruction);
  for (std::size_t k = 0; k < scalar_counters_.size(); ++k) {
    if ((fence.reset >> k & 1) == 0) continue;
    set_counter(agent, scalar_counters_[k], static_cast<std::uint16_t>(fence.reset_to));
  }
}

void Timeline::handed_out(std::size_t index, std::uint32_t tiles) {
  enter_chunk_of(index);
  Agent& agent = core();
  agent.knowledge.tick();
  work(agent, Spent::kScalarCore, options_.timing.costs.scalar_instruction);
  const std::int64_t depth = options_.timing.costs.tile_queue;
  for (int t = 0; t < chip::kTiles; ++t) {
    TileState& tile = tiles_[at(t)];
    if ((tiles >> t & 1) == 0) continue;
    // A full queue holds the core. `dispatches` ends with number dispatched_count - 1.
    const std::int64_t back = tile.dispatched_count - (tile.issued_count++ - depth);
    if (back > 0 && back <= static_cast<std::int64_t>(tile.dispatches.size())) {
      agent.moment.wait_for(tile.dispatches[tile.dispatches.size() - static_cast<std::size_t>(back)]);
    }
  }
  for (int t = 0; t < chip::kTiles; ++t) {
    if ((tiles >> t & 1) != 0) tiles_[at(t)].issued.push_back(stamp_of(agent));
  }
}

void Timeline::handed_to_host_unit(std::size_t index, HostUnitId unit) {
  enter_chunk_of(index);
  core().knowledge.tick();
  work(core(), Spent::kScalarCore, options_.timing.costs.scalar_instruction);
  host_agent(static_cast<int>(unit)).instructions.push_back(stamp_of(core()));
}

// ---- Tiles ----

void Timeline::note_dispatch(TileState& tile, const Agent& dispatcher) {
  tile.dispatches.push_back(dispatcher.moment);
  ++tile.dispatched_count;
  if (static_cast<std::int64_t>(tile.dispatches.size()) > options_.timing.costs.tile_queue) tile.dispatches.pop_front();
}

void Timeline::dispatched(const Tile& tile, int unit, std::size_t /*index*/) {
  TileState& state = tiles_[at(tile.number)];
  Agent& dispatcher = agent(tile.number, kDispatcher);
  receive(dispatcher, state.issued.front());
  state.issued.pop_front();
  dispatcher.knowledge.tick();
  note_dispatch(state, dispatcher);
  agent(tile.number, unit).instructions.push_back(stamp_of(dispatcher));
}

void Timeline::passed_tile_fence(const Tile& tile, std::size_t index, const isa::TileFence& fence) {
  TileState& state = tiles_[at(tile.number)];
  Agent& dispatcher = agent(tile.number, kDispatcher);
  dispatcher.slice.index = static_cast<std::uint32_t>(index);
  receive(dispatcher, state.issued.front());
  state.issued.pop_front();
  for (int unit = 0; unit < chip::kTileUnits; ++unit) {
    if ((fence.drain >> unit & 1) != 0) receive(dispatcher, stamp_of(agent(tile.number, unit)));
  }
  const auto producer = static_cast<std::size_t>(isa::TileCounter::kRingProducerA);
  const auto awaited = static_cast<std::uint32_t>(fence.await_count);
  if (fence.await_producer_a) wait_for_counter(dispatcher, state.counters[producer], awaited);
  if (fence.await_producer_b) wait_for_counter(dispatcher, state.counters[producer + 1], awaited);
  dispatcher.knowledge.tick();
  for (std::size_t k = 0; k < state.counters.size(); ++k) {
    if ((fence.reset >> k & 1) == 0) continue;
    set_counter(dispatcher, state.counters[k], static_cast<std::uint16_t>(fence.reset_to));
  }
  note_dispatch(state, dispatcher);
  if (fence.notify && state.notifications.size() < kMostKept) state.notifications.push_back(stamp_of(dispatcher));
}

void Timeline::started(const Tile* tile, int unit, const Running& run) {
  Agent& worker = tile != nullptr ? agent(tile->number, unit) : host_agent(unit);
  if (!worker.instructions.empty()) {
    receive(worker, worker.instructions.front());
    worker.instructions.pop_front();
  }
  worker.source = {};
  worker.target = {};
  worker.slice = {number_of(worker), run.index, worker.moment.time, worker.moment.time, 0};
  if (tile == nullptr || !options_.find_races) return;
  if (const auto* op = std::get_if<isa::TensorOperation>(&run.operation->code)) {
    const BufferPhases& phases = tile->units[at(unit)].phases;
    worker.loops = isa::NestCursor(op->loops, 0);
    worker.in = isa::NestCursor(op->in, phases.first);
    worker.param = isa::NestCursor(op->param, phases.second);
    worker.psum = isa::NestCursor(op->psum, 0);
    worker.out = isa::NestCursor(op->out, phases.out);
    worker.scaling_phase = phases.scaling;
  }
}

void Timeline::finished(const Tile* tile, int unit, const Running& /*run*/) {
  Agent& worker = tile != nullptr ? agent(tile->number, unit) : host_agent(unit);
  // The rest of a line at the end of an outfeed is padding.
  if (tile == nullptr && unit == static_cast<int>(HostUnitId::kOutfeed) && to_scalar_byte_ != 0) {
    to_scalar_.pop_front();
    to_scalar_byte_ = 0;
  }
  worker.slice.end = worker.moment.time;
  if (options_.keep_slices && slices_.size() < kMostSlices) slices_.push_back(worker.slice);
}

void Timeline::loaded_table(const Tile& tile, const Running& /*run*/) {
  Agent& worker = agent(tile.number, static_cast<int>(isa::Unit::kTensor));
  worker.knowledge.tick();
}

void Timeline::touch(AccessLog* log, bool writes, std::int64_t place, Agent& agent) {
  if (log == nullptr) return;
  const AccessLog::Access access{&agent.knowledge, agent.moment.time, number_of(agent), agent.slice.index};
  if (writes) {
    log->write(place, access, races_);
  } else {
    log->read(place, access, races_);
  }
}

}  // namespace reef::device
