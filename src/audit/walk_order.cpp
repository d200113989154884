// SPDX-License-Identifier: Apache-2.0
// Derives the order that waits, signals and counter settings guarantee, and checks that it covers every access.
#include <algorithm>

#include <fmt/format.h>

#include "audit/walk.h"

namespace reef::audit {

void Walk::report(FindingKind kind, int first_agent, Clock first_clock, const Agent& second, std::string_view memory,
                  int tile, std::int64_t address) {
  Observed observed;
  observed.kind = kind;
  observed.first = agent(first_agent).instruction_at(first_clock);
  observed.second = instruction_of(second);
  observed.tile = tile;
  observed.memory = memory;
  observed.address = address;
  findings_.add(observed);
}

void Walk::report_here(FindingKind kind, const Agent& agent, std::string_view detail, std::string_view memory,
                       std::int64_t address) {
  Observed observed;
  observed.kind = kind;
  observed.second = instruction_of(agent);
  observed.tile = tile_of(agent.number());
  observed.memory = memory;
  observed.address = address;
  observed.detail = detail;
  findings_.add(observed);
}

int Walk::tile_of_counter(const CounterLog& counter) const {
  for (const auto& tile : tiles_) {
    if (&counter >= tile->counters.data() && &counter < tile->counters.data() + tile->counters.size())
      return tile->number;
  }
  return -1;
}

std::string_view Walk::name_of(const CounterLog& counter) const {
  const int tile = tile_of_counter(counter);
  if (tile < 0) return isa::kScalarCounterNames[&counter - scalar_counters_.data()];
  return isa::kTileCounterNames[&counter - tiles_[at(tile)]->counters.data()];
}

// ---- Waits ----

bool Walk::pass(Agent& agent, Worker& worker, Gate& gate, std::span<CounterLog> counters, std::int64_t position) {
  if (position < gate.next_any) return true;
  gate.next_any = kNever;
  for (std::size_t i = 0; i < gate.waits.size(); ++i) {
    const isa::Wait& wait = gate.waits[i];
    if (position >= gate.next[i]) {
      const std::int64_t length = wait.level == 0 ? 1 : gate.nest->pass_length(wait.level);
      const std::int64_t count = wait.level == 0 ? gate.nest->size() : gate.nest->unclipped_size() / length;
      const std::int64_t pass = std::min(position / length, count - 1);
      const std::uint32_t needed =
          static_cast<std::uint32_t>(wait.threshold) + wait.increment * static_cast<std::uint32_t>(pass);
      if (wait.counter >= counters.size() || !await(agent, counters[wait.counter], needed)) {
        if (wait.counter < counters.size()) sleep(counters[wait.counter], worker.actor, needed);
        gate.next_any = position;
        return false;
      }
      gate.next[i] = wait.increment == 0 || pass + 1 >= count ? kNever : (pass + 1) * length;
    }
    gate.next_any = std::min(gate.next_any, gate.next[i]);
  }
  return true;
}

bool Walk::await(Agent& agent, CounterLog& counter, std::uint32_t needed) {
  if (!counter.has_reached(needed)) return false;
  ++statistics_.waits;
  const std::int64_t number = counter.number_of(needed);
  if (!counter.is_set) counter.depends_on_before = true;
  // Before a setting that the agent does not know of, the value from before it might have let the wait pass.
  for (const CounterLog::Setting& setting : counter.settings()) {
    if (agent.knows(setting.by)) break;
    if (isa::has_reached(setting.value_before, needed) && !counter.had_reached_when_set(needed)) {
      report(FindingKind::kCounterUse, setting.by.agent, setting.by.clock, agent, name_of(counter),
             tile_of_counter(counter));
    }
  }
  if (number > CounterLog::kMostAhead && number - counter.known_to(agent) > CounterLog::kMostAhead) {
    report_here(FindingKind::kCounterWrap, agent, ": it may be taken for one that has arrived", name_of(counter));
  }
  Stamp stamp;
  if (number >= 1) {
    if (counter.find(number, stamp)) agent.learn(stamp);
  } else if (!counter.settings().empty() && !isa::has_reached(counter.settings().front().value_before, needed)) {
    agent.learn(counter.settings().front().by);
  }
  counter.note_wait(agent, number);
  return true;
}

void Walk::sleep(CounterLog& counter, int actor, std::uint32_t needed) {
  const std::int64_t number = counter.number_of(needed);
  for (CounterLog::Sleeper& sleeper : counter.sleepers) {
    if (sleeper.actor != actor) continue;
    sleeper.number = std::min(sleeper.number, number);
    return;
  }
  counter.sleepers.push_back({actor, number});
}

// ---- Signals and settings ----

void Walk::signal(Agent& agent, CounterLog& counter, std::int64_t count) {
  if (count <= 0) return;
  statistics_.signals += count;
  if (!counter.settings().empty() && !agent.knows(counter.settings().front().by)) {
    const Stamp& by = counter.settings().front().by;
    report(FindingKind::kCounterUse, by.agent, by.clock, agent, name_of(counter), tile_of_counter(counter));
  }
  const Stamp& last = counter.last_signal();
  if (last.clock != 0 && !agent.knows(last)) {
    report(FindingKind::kSignalOrder, last.agent, last.clock, agent, name_of(counter), tile_of_counter(counter));
  }
  counter.add(agent.stamp(), count);
  if (const auto asked = counter.outrun(agent, CounterLog::kMostBehind); asked.agent >= 0) {
    Observed observed;
    observed.kind = FindingKind::kCounterWrap;
    observed.first = instruction_of(agent);
    observed.second = this->agent(asked.agent).instruction_at(asked.clock + 1);
    observed.tile = tile_of_counter(counter);
    observed.memory = name_of(counter);
    observed.detail = ": it may be taken for one that has not arrived";
    findings_.add(observed);
  }
  if (counter.sleepers.empty()) return;
  std::erase_if(counter.sleepers, [&](const CounterLog::Sleeper& sleeper) {
    if (sleeper.number > counter.total()) return false;
    wake(sleeper.actor);
    return true;
  });
}

// Whose turn it is on the ring is known everywhere at once.
void Walk::signal_ring(Agent& agent, int channel, std::int64_t count) {
  if (count <= 0) return;
  const auto c = static_cast<std::size_t>(channel);
  for (auto& tile : tiles_)
    signal(agent, tile->counters[static_cast<std::size_t>(isa::TileCounter::kRingProducerA) + c], count);
  signal(agent, scalar_counters_[static_cast<std::size_t>(isa::ScalarCounter::kRingProducerA) + c], count);
}

// No signal must be lost, no wait from before be left waiting. Setting a counter to the value it has does neither.
void Walk::set_counter(Agent& agent, CounterLog& counter, std::uint16_t value) {
  const Stamp& last = counter.last_signal();
  if (last.clock != 0 && !agent.knows(last)) {
    report(FindingKind::kCounterSet, last.agent, last.clock, agent, name_of(counter), tile_of_counter(counter));
  }
  for (const auto& waits : counter.asked()) {
    for (auto asked = std::make_reverse_iterator(waits.end()); asked != std::make_reverse_iterator(waits.begin());
         ++asked) {
      if (agent.knows(asked->agent, asked->clock + 1)) break;
      const bool all_reached = isa::has_reached(value, counter.value_of(asked->number)) &&
                               isa::has_reached(value, counter.value_of(asked->first_number()));
      if (all_reached) continue;
      report(FindingKind::kCounterSet, asked->agent, asked->clock + 1, agent, name_of(counter),
             tile_of_counter(counter));
    }
  }
  counter.is_set = true;
  if (counter.value() == value) return;
  counter.set(value, agent.stamp());
  for (const CounterLog::Sleeper& sleeper : counter.sleepers) wake(sleeper.actor);
  counter.sleepers.clear();
}

// ---- Memories ----

void Walk::read(PlaceLog& log, std::int64_t place, const Agent& agent, std::size_t reader) {
  ++statistics_.reads;
  if (!log.holds(place)) {
    Observed observed{
        FindingKind::kAddress, Observed::kNone, agent.instruction_at(agent.now()), log.tile(), log.name(), -1,
        "reads beyond the end"};
    return findings_.add(observed);
  }
  const PlaceLog::Conflict write = log.read(place, agent, reader);
  if (write.agent < 0) return;
  Observed observed{FindingKind::kReadAfterWrite,
                    this->agent(write.agent).instruction_at(write.clock),
                    agent.instruction_at(agent.now()),
                    log.tile(),
                    log.name(),
                    place,
                    ""};
  findings_.add(observed);
}

bool Walk::write(PlaceLog& log, std::int64_t place, const Agent& agent) {
  ++statistics_.writes;
  if (!log.holds(place)) {
    Observed observed{
        FindingKind::kAddress,  Observed::kNone, agent.instruction_at(agent.now()), log.tile(), log.name(), -1,
        "writes beyond the end"};
    findings_.add(observed);
    return false;
  }
  PlaceLog::Conflict earlier;
  const PlaceLog::Conflict read = log.write(place, agent, earlier);
  const auto tell = [&](FindingKind kind, const PlaceLog::Conflict& conflict) {
    Observed observed{kind,
                      this->agent(conflict.agent).instruction_at(conflict.clock),
                      agent.instruction_at(agent.now()),
                      log.tile(),
                      log.name(),
                      place,
                      ""};
    findings_.add(observed);
  };
  if (read.agent >= 0) tell(FindingKind::kWriteAfterRead, read);
  if (earlier.agent >= 0) tell(FindingKind::kWriteAfterWrite, earlier);
  return true;
}

}  // namespace reef::audit
