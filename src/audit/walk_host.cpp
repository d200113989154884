// SPDX-License-Identifier: Apache-2.0
// The units between host and ring, and what is left when a program has ended or cannot go on.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "audit/walk.h"

namespace reef::audit {
namespace {

// That a program may send the host before it asks it to take them; far more than any does.
constexpr std::int64_t kMostUnclaimed = std::int64_t{1} << 28;

}  // namespace

bool Walk::infeed(Worker& worker, const isa::Infeed& op) {
  Agent& agent = *worker.agent;
  Fifo& fifo = fifos_[op.activations ? 1 : 0];
  auto& transfers = incoming_[op.activations ? 1 : 0];
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, scalar_counters_, worker.first.position())) return false;
    std::int64_t ready = 0;
    for (const Transfer& transfer : transfers) {
      if (transfer.after_outputs > outputs_done_ || ready >= fifo.unit_bytes) break;
      ready += transfer.bytes;
    }
    if (ready < fifo.unit_bytes || !spend(1)) return false;
    for (std::int64_t left = fifo.unit_bytes; left > 0;) {
      Transfer& transfer = transfers.front();
      agent.learn(transfer.asked);
      const std::int64_t part = std::min(left, transfer.bytes);
      left -= part;
      transfer.bytes -= part;
      if (transfer.bytes == 0) transfers.pop_front();
    }
    agent.tick();
    const std::int64_t at = fifo.unit_at(worker.first.address());
    auto& state = fifo.states[reef::at(at)];
    if (state == Fifo::kFull) {
      report_here(FindingKind::kFifo, agent, "fills before what is there was taken", fifo.log->name(), at);
    }
    write(*fifo.log, at, agent);
    state = Fifo::kFull;
    worker.first.advance();
    signal(agent, scalar_counters_[op.signal.counter], worker.first_passes.up_to(worker.first.position()));
  }
  return true;
}

bool Walk::pop(Worker& worker, const isa::Pop& op) {
  Agent& agent = *worker.agent;
  Fifo& fifo = fifos_[reef::at(op.source)];
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, scalar_counters_, worker.first.position())) return false;
    if (!has_room(op.to_tiles, 0, false)) {
      ring_sleepers_[0].push_back(worker.actor);
      return false;
    }
    if (!spend(1)) return false;
    agent.tick();
    const std::int64_t at = fifo.unit_at(worker.first.address());
    auto& state = fifo.states[reef::at(at)];
    // A unit in which two pops meet is taken by both in a row.
    if (state != Fifo::kFull && at != fifo.last_taken) {
      report_here(FindingKind::kFifo, agent, "takes where nothing new is", fifo.log->name(), at);
    }
    read(*fifo.log, at, agent, 0);
    state = Fifo::kTaken;
    fifo.last_taken = at;
    worker.first.advance();
    worker.pending_bytes += fifo.unit_bytes;
    while (worker.pending_bytes >= op.line_bytes || (worker.first.done() && worker.pending_bytes > 0)) {
      const std::int64_t words = std::min<std::int64_t>(op.line_bytes, worker.pending_bytes) / 4;
      send_line(agent, op.to_tiles, 0, false, words >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << words) - 1);
      worker.pending_bytes -= std::min<std::int64_t>(op.line_bytes, worker.pending_bytes);
    }
    const std::int64_t position = worker.first.position();
    signal(agent, scalar_counters_[op.signal.counter], worker.first_passes.up_to(position));
    signal_ring(agent, 0, worker.second_passes.up_to(position));
  }
  return true;
}

// Lines from the ring go to the host, to the loop-back FIFO or to scalar memory. What is left of a line at the end of
// the instruction is padding.
bool Walk::outfeed(Worker& worker, const isa::Outfeed& op) {
  Agent& agent = *worker.agent;
  while (!worker.first.done()) {
    if (!pass(agent, worker, worker.first_gate, scalar_counters_, worker.first.position())) return false;
    if (to_scalar_.empty() || !spend(1)) return false;
    agent.learn(to_scalar_.front().sent);
    agent.tick();
    const std::int64_t address = worker.first.address();
    if (op.unit_bytes == 8) {
      give_host(8);
    } else if (op.loop_back) {
      Fifo& fifo = fifos_[2];
      const std::int64_t at = fifo.unit_at(address);
      write(*fifo.log, at, agent);
      fifo.states[reef::at(at)] = Fifo::kFull;  // padding of lines is never taken
    } else {
      const std::int64_t word =
          (address % ScalarState::kMemoryWords + ScalarState::kMemoryWords) % ScalarState::kMemoryWords;
      write(*scalar_memory_, word, agent);
      scalar_.forget_word(word);
    }
    to_scalar_byte_ += op.unit_bytes;
    worker.first.advance();
    if (to_scalar_byte_ >= chip::kWideLineBytes || worker.first.done()) {
      to_scalar_.pop_front();
      to_scalar_byte_ = 0;
      took_line(0);
      took_line(1);
    }
    signal(agent, scalar_counters_[op.signal.counter], worker.first_passes.up_to(worker.first.position()));
  }
  return true;
}

// Bytes for the host, and the output transfers that they complete.
void Walk::give_host(std::int64_t bytes) {
  unclaimed_bytes_ += bytes;
  if (unclaimed_bytes_ > kMostUnclaimed) return stop("the host is sent more than it was asked to take");
  while (!outputs_.empty() && unclaimed_bytes_ > 0) {
    const std::int64_t part = std::min(outputs_.front(), unclaimed_bytes_);
    outputs_.front() -= part;
    unclaimed_bytes_ -= part;
    if (outputs_.front() > 0) return;
    outputs_.pop_front();
    ++outputs_done_;
    wake(kInfeedActor);
  }
}

// ---- Endings ----

std::string Walk::held_by(Worker& worker) {
  std::span<CounterLog> counters = scalar_counters_;
  if (worker.tile >= 0) counters = tile_of_worker(worker).counters;
  std::vector<std::string> texts;
  for (const Gate* gate : {&worker.first_gate, &worker.second_gate}) {
    const isa::NestCursor& cursor = gate == &worker.first_gate ? worker.first : worker.second;
    for (std::size_t i = 0; i < gate->waits.size(); ++i) {
      if (gate->nest == nullptr || cursor.done() || cursor.position() < gate->next[i]) continue;
      const isa::Wait& wait = gate->waits[i];
      if (wait.counter >= counters.size()) {
        texts.push_back(fmt::format("counter {}, which does not exist", wait.counter));
        continue;
      }
      const CounterLog& counter = counters[wait.counter];
      const std::int64_t length = wait.level == 0 ? 1 : gate->nest->pass_length(wait.level);
      const auto needed = static_cast<std::uint32_t>(wait.threshold) +
                          wait.increment * static_cast<std::uint32_t>(cursor.position() / length);
      if (counter.has_reached(needed)) continue;
      texts.push_back(fmt::format("{} to reach {} (it is {})", name_of(counter),
                                  static_cast<std::int16_t>(static_cast<std::uint16_t>(needed)),
                                  static_cast<std::int16_t>(counter.value())));
    }
  }
  if (texts.empty()) return "stands still: what it is to take never arrives, or nobody takes what it sends";
  return fmt::format("stands still: it waits for {}", fmt::join(texts, ", "));
}

void Walk::report_standstill() {
  const auto add = [&](std::uint32_t index, int tile, std::string_view detail) {
    Observed observed;
    observed.kind = FindingKind::kStandstill;
    observed.second = index;
    observed.tile = tile;
    observed.detail = detail;
    findings_.add(observed);
    is_broken_ = true;
  };
  for (auto& tile : tiles_) {
    for (Worker& worker : tile->workers) {
      if (worker.is_running) add(worker.job.index, tile->number, held_by(worker));
    }
    if (!tile->dispatch.empty()) add(tile->dispatch.front().index, tile->number, "is never dispatched");
  }
  for (Worker& worker : host_workers_) {
    if (worker.is_running) add(worker.job.index, -1, held_by(worker));
  }
  if (next_ < listing_->size()) add(static_cast<std::uint32_t>(next_), -1, "is never passed by the scalar core");
}

void Walk::report_left_over() {
  const auto add = [&](int tile, std::string_view detail) {
    Observed observed;
    observed.kind = FindingKind::kLeftOver;
    observed.tile = tile;
    observed.detail = detail;
    findings_.add(observed);
    is_broken_ = true;
  };
  for (auto& tile : tiles_) {
    for (std::size_t channel = 0; channel < tile->ring.size(); ++channel) {
      if (!tile->ring[channel].empty()) {
        add(tile->number, fmt::format("lines are left on ring channel {}", channel == 0 ? 'A' : 'B'));
      }
    }
    for (const auto& link : tile->links) {
      if (!link.empty()) add(tile->number, "words are left on a mesh link");
    }
    if (!tile->notifications.empty()) add(tile->number, "nobody waits for a notification");
  }
  if (!to_scalar_.empty()) add(-1, "lines are left on the ring for the scalar core");
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& states = fifos_[i].states;
    const auto left = std::count(states.begin(), states.end(), Fifo::kFull);
    if (left != 0) add(-1, fmt::format("{} units are left: {}", left, fifos_[i].log->name()));
    if (!incoming_[i].empty()) add(-1, fmt::format("{} asked for are not taken", i == 0 ? "parameters" : "inputs"));
  }
  if (!outputs_.empty()) add(-1, "outputs asked for are not sent");
  if (unclaimed_bytes_ > 0) add(-1, "the host is sent more than it was asked to take");
}

void Walk::check_repetition() {
  const auto add = [&](int tile, std::string_view detail) {
    Observed observed;
    observed.kind = FindingKind::kRepetition;
    observed.tile = tile;
    observed.detail = detail;
    findings_.add(observed);
  };
  const auto check = [&](const CounterLog& counter, int tile) {
    if (!counter.depends_on_before || counter.value() == counter.initial) return;
    add(tile,
        fmt::format("{} is awaited before it is set; it begins at {} the first time, at {} the next", name_of(counter),
                    static_cast<std::int16_t>(counter.initial), static_cast<std::int16_t>(counter.value())));
  };
  for (const CounterLog& counter : scalar_counters_) check(counter, -1);
  for (const auto& tile : tiles_) {
    for (const CounterLog& counter : tile->counters) check(counter, tile->number);
    for (const Worker& worker : tile->workers) {
      const BufferPhases &a = worker.initial_phases, &b = worker.phases;
      const std::int64_t odd = (a.first ^ b.first) | (a.second ^ b.second) | (a.out ^ b.out) | (a.scaling ^ b.scaling);
      if (worker.uses_old_phases && (odd & 1) != 0) {
        add(tile->number,
            fmt::format("double buffers of {} are used before a fence restarts them, and do not end as they began",
                        isa::unit_name(static_cast<isa::Unit>(worker.actor % kActorsPerTile))));
      }
    }
  }
}

}  // namespace reef::audit
