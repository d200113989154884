// SPDX-License-Identifier: Apache-2.0
// Who moves when: actors, dispatch and fences of tiles.
#include "audit/walk.h"

#include <algorithm>

#include <fmt/format.h>

namespace reef::audit {
namespace {

// More than any compiled program has waiting.
constexpr std::size_t kMostQueued = 1 << 12;

constexpr int unit_number(isa::Unit unit) { return static_cast<int>(unit); }

// The same addresses in the same order with fewer dimensions: one that goes on where the dimension inside it ends is
// joined with it. Positions stay the same, levels do not.
isa::NestShape joined_dimensions(const isa::NestShape& nest) {
  if (nest.clip_dim != 0) return nest;
  isa::NestShape joined = nest;
  joined.dims = 0;
  joined.stride = {};
  joined.count = {};
  joined.pass_lengths = {};
  joined.pass_lengths[0] = 1;
  const int buffer_level = std::min(nest.buffer_level, nest.dims);
  joined.buffer_level = 0;
  for (int k = 0; k < nest.dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    const auto last = static_cast<std::size_t>(std::max(joined.dims - 1, 0));
    const bool goes_on =
        joined.dims > 0 && nest.stride[d] == joined.stride[last] * static_cast<std::uint64_t>(joined.count[last]);
    // A pass of the double buffer must end with a dimension.
    const bool may_join = nest.buffer_stride == 0 || k != buffer_level;
    if (joined.dims > 0 && may_join && (goes_on || nest.count[d] == 1 || joined.count[last] == 1)) {
      if (joined.count[last] == 1) joined.stride[last] = nest.stride[d];
      joined.count[last] *= nest.count[d];
    } else {
      joined.stride[at(joined.dims)] = nest.stride[d];
      joined.count[at(joined.dims)] = nest.count[d];
      ++joined.dims;
    }
    const auto now = static_cast<std::size_t>(joined.dims);
    joined.pass_lengths[now] = joined.pass_lengths[now - 1] * joined.count[now - 1];
    if (k + 1 == buffer_level) joined.buffer_level = joined.dims;
  }
  return joined;
}

}  // namespace

void Gate::open(const isa::NestShape& shape, std::span<const isa::Wait> list) {
  nest = &shape;
  waits = list.first(std::min(list.size(), next.size()));
  next = {};
  next_any = waits.empty() ? kNever : 0;
}

void PassCount::open(const isa::NestShape& shape, const isa::Signal& counted) {
  nest = &shape;
  signal = &counted;
  done = 0;
  next = counted.enabled ? std::min(shape.pass_length(counted.level), shape.size()) : kNever;
}

std::int64_t PassCount::more_up_to(std::int64_t position) {
  const std::int64_t passes = nest->passes_before(position, signal->level),
                     more = std::max<std::int64_t>(passes - done, 0);
  done += more;
  const std::int64_t length = nest->pass_length(signal->level);
  next = position >= nest->size() ? kNever : std::min((position / length + 1) * length, nest->size());
  return more;
}

Walk::Walk(Findings& findings, Statistics& statistics, const AuditOptions& options)
    : findings_(findings), statistics_(statistics), options_(options) {
  using enum isa::Unit;
  for (int t = 0; t < chip::kTiles; ++t) {
    TileState& tile = *tiles_.emplace_back(std::make_unique<TileState>());
    tile.number = t;
    const auto readers = [&](std::initializer_list<isa::Unit> units) {
      std::vector<int> agents;
      for (const isa::Unit unit : units) agents.push_back(agent_of(t, unit_number(unit)));
      return agents;
    };
    tile.narrow =
        std::make_unique<PlaceLog>("word of narrow memory", kNarrowWords, t,
                                   readers({kTensor, kNarrowToWide, kMeshSouth, kMeshWest, kMeshNorth, kMeshEast}));
    tile.wide = std::make_unique<PlaceLog>("line of wide memory", chip::kWideLines, t,
                                           readers({kTensor, kWideToNarrow, kRingSend}));
    tile.scaling = std::make_unique<PlaceLog>("step of scaling memory", kScalingSteps, t, readers({kTensor}));
    tile.narrow_written.resize(kNarrowWords);
    tile.scaling_written.resize(kScalingSteps);
    tile.wide_written.resize(chip::kWideLines);
    for (int u = 0; u < chip::kTileUnits; ++u) {
      Worker& worker = tile.workers[at(u)];
      worker.actor = t * kActorsPerTile + u;
      worker.tile = t;
    }
  }
  for (int i = 0; i < 3; ++i) host_workers_[at(i)].actor = kInfeedActor + i;
  static constexpr std::array<std::string_view, 3> kNames = {
      "unit of the parameter FIFO", "unit of the activation FIFO", "word of the loop-back FIFO"};
  static constexpr std::array<std::int64_t, 3> kUnits = {chip::kParameterFifoUnits, chip::kActivationFifoUnits,
                                                         chip::kLoopBackBufferWords};
  static constexpr std::array<std::int64_t, 3> kBytes = {chip::kParameterFifoUnitBytes, chip::kActivationFifoUnitBytes,
                                                         4};
  for (std::size_t i = 0; i < fifos_.size(); ++i) {
    fifos_[i].log = std::make_unique<PlaceLog>(kNames[i], kUnits[i], -1, std::vector<int>{kPopAgent});
    fifos_[i].unit_bytes = kBytes[i];
    fifos_[i].states.resize(static_cast<std::size_t>(kUnits[i]));
    fifos_[i].written.resize(static_cast<std::size_t>(kUnits[i]));
  }
  scalar_memory_ =
      std::make_unique<PlaceLog>("word of scalar memory", ScalarState::kMemoryWords, -1, std::vector<int>{kCoreAgent});
}

// Memories and counters stay as the program before left them; everything that happened then lies behind everybody.
void Walk::begin(const Listing& listing) {
  listing_ = &listing;
  findings_.begin(listing);
  ++statistics_.programs;
  agents_.clear();
  agents_.reserve(kAgents);
  for (int i = 0; i < kAgents; ++i) agents_.emplace_back(i, agents_.data());
  for (auto& tile : tiles_) {
    for (CounterLog& counter : tile->counters) counter.begin(counter.value());
    tile->narrow->restart();
    tile->wide->restart();
    tile->scaling->restart();
    tile->wide_relied_on.assign(chip::kWideLines, 0);
    tile->last_line = {};
    for (int u = 0; u < chip::kTileUnits; ++u) {
      Worker& worker = tile->workers[at(u)];
      worker.agent = &agent(tile->number, u);
      const int mesh = u - unit_number(isa::Unit::kMeshSouth);
      worker.receiver = mesh >= 0 ? &agent(tile->number, kFirstMeshReceiver + mesh) : nullptr;
      worker.phases_are_old = true;
      worker.uses_old_phases = false;
      worker.initial_phases = worker.phases;
    }
  }
  for (int i = 0; i < 3; ++i) host_workers_[at(i)].agent = &agent(kInfeedAgent + i);
  for (CounterLog& counter : scalar_counters_) counter.begin(counter.value());
  for (Fifo& fifo : fifos_) {
    fifo.log->restart();
    std::fill(fifo.states.begin(), fifo.states.end(), Fifo::kEmpty);
    fifo.last_taken = -1;
  }
  scalar_memory_->restart();
  last_to_scalar_ = {};
  ring_turn_ = {};
  scalar_ = {};
  next_ = 0;
  repeats_left_ = 0;
  outputs_asked_ = outputs_done_ = unclaimed_bytes_ = 0;
}

bool Walk::run(const Listing& listing) {
  begin(listing);
  while (!is_stopped()) {
    let_everybody_move();
    if (is_stopped() || !core_moves()) break;
  }
  statistics_.steps = steps_;
  if (is_stopped()) return false;
  report_standstill();
  if (is_broken_) return false;
  report_left_over();
  return !is_broken_;
}

bool Walk::look_at_limits() {
  constexpr std::int64_t kStepsBetweenLooks = 1 << 12;
  next_look_ = std::min(options_.max_steps, steps_ + kStepsBetweenLooks);
  if (is_stopped()) return false;
  if (steps_ > options_.max_steps) {
    stop(fmt::format("the programs take more than {} steps", options_.max_steps));
  } else if (options_.budget.is_over()) {
    stop("the time limit has passed");
  }
  return !is_stopped();
}

void Walk::wake(int actor) {
  bool& is_ready = is_ready_[at(actor)];
  if (is_ready) return;
  is_ready = true;
  ready_.push_back(actor);
}

void Walk::let_everybody_move() {
  while (!ready_.empty() && !is_stopped()) {
    const int actor = ready_.front();
    ready_.pop_front();
    is_ready_[at(actor)] = false;
    run_actor(actor);
  }
}

void Walk::run_actor(int actor) {
  if (actor >= kInfeedActor) return run_worker(host_workers_[at(actor - kInfeedActor)]);
  TileState& tile = *tiles_[at(actor / kActorsPerTile)];
  const int unit = actor % kActorsPerTile;
  if (unit == kDispatcher) return dispatch(tile);
  run_worker(tile.workers[at(unit)]);
}

void Walk::run_worker(Worker& worker) {
  while (!is_stopped()) {
    if (!worker.is_running) {
      if (worker.queue.empty()) return;
      take_up(worker);
    }
    if (!carry_out(worker)) return;
    finish(worker);
  }
}

bool Walk::carry_out(Worker& worker) {
  const isa::OperationCode& code = worker.operation->code;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) return tensor(worker, *op);
  if (const auto* op = std::get_if<isa::RingSend>(&code)) return ring_send(worker, *op);
  if (const auto* op = std::get_if<isa::RingReceive>(&code)) return ring_receive(worker, *op);
  if (const auto* op = std::get_if<isa::NarrowToWide>(&code)) return narrow_to_wide(worker, *op);
  if (const auto* op = std::get_if<isa::WideToNarrow>(&code)) {
    return op->to_scaling ? wide_to_scaling(worker, *op) : wide_to_narrow(worker, *op);
  }
  if (const auto* op = std::get_if<isa::Mesh>(&code)) return mesh(worker, *op);
  if (const auto* op = std::get_if<isa::Infeed>(&code)) return infeed(worker, *op);
  if (const auto* op = std::get_if<isa::Pop>(&code)) return pop(worker, *op);
  if (const auto* op = std::get_if<isa::Outfeed>(&code)) return outfeed(worker, *op);
  return true;  // an activation table
}

void Walk::take_up(Worker& worker) {
  worker.job = std::move(worker.queue.front());
  worker.queue.pop_front();
  worker.is_running = true;
  worker.operation = &listing_->operations[worker.job.index];
  for (Agent* half : {worker.agent, worker.receiver}) {
    if (half == nullptr) continue;
    half->learn(worker.job.issued);
    half->begin_instruction(worker.job.index);
  }
  worker.header_done = false;
  worker.header_line = worker.line_word = worker.lines_to_leave = worker.pending_bytes = 0;
  worker.skipped_at = -1;
  worker.line_written = 0;
  worker.has_read = false;
  worker.results = 0;
  const isa::OperationCode& code = worker.operation->code;
  const auto open = [&](const isa::NestShape* first, std::span<const isa::Wait> first_waits,
                        const isa::Signal* first_signal, const isa::NestShape* second,
                        std::span<const isa::Wait> second_waits, const isa::Signal* second_signal) {
    static const isa::Signal kNoSignal;
    const bool has_phases = worker.tile >= 0;
    if (first != nullptr) {
      worker.first = isa::NestCursor(*first, has_phases ? worker.phases.first : 0);
      worker.first_gate.open(*first, first_waits);
      worker.first_passes.open(*first, first_signal != nullptr ? *first_signal : kNoSignal);
    }
    if (second != nullptr) {
      worker.second = isa::NestCursor(*second, worker.phases.second);
      worker.second_gate.open(*second, second_waits);
      worker.second_passes.open(*second, second_signal != nullptr ? *second_signal : kNoSignal);
    }
    const bool has_buffers =
        (first != nullptr && first->buffer_stride != 0) || (second != nullptr && second->buffer_stride != 0);
    if (worker.phases_are_old && has_buffers) worker.uses_old_phases = true;
  };
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) {
    worker.first = isa::NestCursor(op->loops, 0);
    worker.first_gate.open(op->loops, op->waits);
    worker.in_shape = joined_dimensions(op->in);
    worker.param_shape = joined_dimensions(op->param);
    worker.out_shape = joined_dimensions(op->out);
    worker.single_steps_until = worker.no_blocks_until = 0;
    worker.in = isa::NestCursor(worker.in_shape, worker.phases.first);
    worker.param = isa::NestCursor(worker.param_shape, worker.phases.second);
    worker.psum = isa::NestCursor(op->psum, 0);
    worker.out = isa::NestCursor(worker.out_shape, worker.phases.out);
    worker.first_passes.open(op->param, op->parameters);
    worker.second_passes.open(op->out, op->avdata);
    if (worker.phases_are_old) worker.uses_old_phases = true;
  } else if (const auto* send = std::get_if<isa::RingSend>(&code)) {
    open(&send->in, send->waits, &send->ring_write, nullptr, {}, nullptr);
    worker.second_passes.open(send->in, send->ring_producer);
  } else if (const auto* receive = std::get_if<isa::RingReceive>(&code)) {
    open(&receive->out, receive->waits, &receive->read, nullptr, {}, nullptr);
  } else if (const auto* to_wide = std::get_if<isa::NarrowToWide>(&code)) {
    open(&to_wide->in, to_wide->in_waits, nullptr, &to_wide->out, to_wide->out_waits, &to_wide->signal);
  } else if (const auto* to_narrow = std::get_if<isa::WideToNarrow>(&code)) {
    open(&to_narrow->in, to_narrow->in_waits, nullptr, &to_narrow->out, to_narrow->out_waits, &to_narrow->signal);
  } else if (const auto* mesh = std::get_if<isa::Mesh>(&code)) {
    open(&mesh->in, mesh->in_waits, &mesh->sent, &mesh->out, mesh->out_waits, &mesh->received);
  } else if (const auto* infeed = std::get_if<isa::Infeed>(&code)) {
    open(&infeed->out, infeed->waits, &infeed->signal, nullptr, {}, nullptr);
  } else if (const auto* pop = std::get_if<isa::Pop>(&code)) {
    open(&pop->in, pop->waits, &pop->signal, nullptr, {}, nullptr);
    worker.second_passes.open(pop->in, pop->ring_producer);
  } else if (const auto* outfeed = std::get_if<isa::Outfeed>(&code)) {
    open(&outfeed->out, outfeed->waits, &outfeed->signal, nullptr, {}, nullptr);
  }
}

void Walk::finish(Worker& worker) {
  const isa::OperationCode& code = worker.operation->code;
  BufferPhases& phases = worker.phases;
  if (const auto* op = std::get_if<isa::TensorOperation>(&code)) {
    phases.first += op->in.buffer_passes();
    phases.second += op->param.buffer_passes();
    phases.out += op->out.buffer_passes();
    phases.scaling += op->loops.passes(op->scaling_level);
  } else if (const auto* send = std::get_if<isa::RingSend>(&code)) {
    phases.first += send->in.buffer_passes();
  } else if (const auto* receive = std::get_if<isa::RingReceive>(&code)) {
    phases.first += receive->out.buffer_passes();
  } else if (const auto* to_wide = std::get_if<isa::NarrowToWide>(&code)) {
    phases.first += to_wide->in.buffer_passes();
    phases.second += to_wide->out.buffer_passes();
  } else if (const auto* to_narrow = std::get_if<isa::WideToNarrow>(&code)) {
    phases.first += to_narrow->in.buffer_passes();
    phases.second += to_narrow->out.buffer_passes();
  } else if (const auto* mesh = std::get_if<isa::Mesh>(&code)) {
    if (mesh->sends) phases.first += mesh->in.buffer_passes();
    if (mesh->receives) phases.second += mesh->out.buffer_passes();
  }
  if (worker.receiver != nullptr) {
    worker.agent->tick();
    worker.receiver->tick();
    worker.agent->learn(*worker.receiver);
    worker.receiver->learn(*worker.agent);
  }
  worker.agent->tick();
  if (worker.receiver != nullptr) worker.receiver->tick();
  worker.is_running = false;
  if (worker.tile >= 0 && worker.queue.empty()) wake(worker.tile * kActorsPerTile + kDispatcher);
}

// ---- Dispatch ----

bool Walk::fence_passes(TileState& tile, const Job& job, const isa::TileFence& fence) {
  Agent& dispatcher = agent(tile.number, kDispatcher);
  const int actor = tile.number * kActorsPerTile + kDispatcher;
  for (int u = 0; u < chip::kTileUnits; ++u) {
    if ((fence.drain >> u & 1) != 0 && !tile.workers[at(u)].is_idle()) return false;
  }
  dispatcher.learn(job.issued);
  dispatcher.begin_instruction(job.index);
  const auto awaited = static_cast<std::uint32_t>(fence.await_count);
  for (int channel = 0; channel < 2; ++channel) {
    if (!(channel == 0 ? fence.await_producer_a : fence.await_producer_b)) continue;
    CounterLog& counter =
        tile.counters[static_cast<std::size_t>(isa::TileCounter::kRingProducerA) + static_cast<std::size_t>(channel)];
    if (await(dispatcher, counter, awaited)) continue;
    sleep(counter, actor, awaited);
    return false;
  }
  for (int u = 0; u < chip::kTileUnits; ++u) {
    if ((fence.drain >> u & 1) == 0) continue;
    Worker& worker = tile.workers[at(u)];
    dispatcher.learn(*worker.agent);
    if (worker.receiver != nullptr) dispatcher.learn(*worker.receiver);
  }
  dispatcher.tick();
  for (std::size_t u = 0; u < tile.workers.size(); ++u) {
    if ((fence.restarts() >> u & 1) == 0) continue;
    tile.workers[u].phases = {};
    tile.workers[u].phases_are_old = false;
  }
  for (std::size_t k = 0; k < tile.counters.size(); ++k) {
    if ((fence.reset >> k & 1) != 0)
      set_counter(dispatcher, tile.counters[k], static_cast<std::uint16_t>(fence.reset_to));
  }
  if (fence.notify) {
    if (tile.notifications.size() < kMostQueued) tile.notifications.push_back(dispatcher.stamp());
  }
  return true;
}

void Walk::dispatch(TileState& tile) {
  while (!tile.dispatch.empty() && !is_stopped()) {
    Job& job = tile.dispatch.front();
    const isa::Operation& operation = listing_->operations[job.index];
    if (const auto* fence = std::get_if<isa::TileFence>(&operation.code)) {
      if (!fence_passes(tile, job, *fence)) return;
    } else {
      Agent& dispatcher = agent(tile.number, kDispatcher);
      dispatcher.learn(job.issued);
      dispatcher.begin_instruction(job.index);
      dispatcher.tick();
      const auto unit = static_cast<std::size_t>(isa::info(operation.opcode).unit);
      Worker& worker = tile.workers[unit];
      if (worker.queue.size() >= kMostQueued)
        return stop(fmt::format("more than {} instructions wait for one unit", kMostQueued));
      worker.queue.push_back({job.index, job.base, dispatcher.stamp()});
      wake(worker.actor);
    }
    tile.dispatch.pop_front();
  }
}

}  // namespace reef::audit
