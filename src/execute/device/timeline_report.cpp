// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "execute/device/program.h"
#include "execute/device/timeline.h"
#include "isa/opcode.h"

namespace reef::device {
std::string agent_name(int agent) {
  if (agent == kCoreAgent) return "scalar core";
  if (agent >= kFirstHostAgent) return std::string(host_unit_name(agent - kFirstHostAgent));
  const int unit = agent % kAgentsPerTile;
  if (unit == kDispatcher) return "dispatch";
  return std::string(isa::unit_name(static_cast<isa::Unit>(unit)));
}

TimeReport Timeline::report() const {
  TimeReport report = totals_;
  report.clock_hz = options_.timing.clock_hz;
  Moment end = link_out_;
  for (const Agent& agent : agents_) end.wait_for(agent.moment);
  report.cycles = end.time;
  for (std::size_t k = 0; k < kSpentKinds; ++k) report.critical_path[k] = end.spent[k];
  for (int unit = 0; unit < chip::kTileUnits; ++unit) {
    UnitTime time{agent_name(unit), 0, chip::kTiles};
    for (int t = 0; t < chip::kTiles; ++t) time.busy += agents_[at(agent_of(t, unit))].busy;
    report.units.push_back(time);
  }
  for (int i = kFirstHostAgent; i < kAgents; ++i) {
    report.units.push_back({agent_name(i), agents_[at(i)].busy, 1});
  }
  return report;
}

void Timeline::close_record() {
  if (program_ == nullptr) return;
  records_.push_back({program_, report(), std::move(slices_), std::move(link_slices_), races_.all()});
  program_ = nullptr;
}

std::vector<ProgramRecord> Timeline::take_records() {
  close_record();
  return std::exchange(records_, {});
}

std::string ProgramRecord::describe(const Race& race) const {
  const auto who = [&](int agent, std::uint32_t index) {
    const std::string what = program->describe(index);  // names the unit, too
    return agent < kFirstHostAgent ? fmt::format("{} on tile {}", what, agent / kAgentsPerTile) : what;
  };
  const std::string first = who(race.first_agent, race.first_index), second = who(race.second_agent, race.second_index);
  std::string more = race.breaks_the_order()
                         ? fmt::format("; in simulated time it comes {:.0f} cycles too early", -race.slack)
                         : fmt::format("; in simulated time it comes {:.0f} cycles later", race.slack);
  if (race.times > 1) more += fmt::format(" ({} such accesses)", race.times);
  switch (race.kind) {
    case Race::Kind::kReadAfterWrite:
      return fmt::format("{}: {} reads what {} wrote, and nothing makes it wait{}", race.place, second, first, more);
    case Race::Kind::kWriteAfterRead:
      return fmt::format("{}: {} overwrites what {} read, and nothing makes it wait{}", race.place, second, first,
                         more);
    case Race::Kind::kWriteAfterWrite:
      return fmt::format("{}: {} overwrites what {} wrote, and nothing makes it wait{}", race.place, second, first,
                         more);
    case Race::Kind::kRingTurn:
      return fmt::format("{}: {} sends after {}, and nothing makes it wait for its turn{}", race.place, second, first,
                         more);
    case Race::Kind::kCounterSet:
      return fmt::format("{}{}: {} sets it, and nothing makes it wait for {}, which used it before{}", race.place,
                         race.tile < 0 ? "" : fmt::format(" of tile {}", race.tile), second, first, more);
    case Race::Kind::kCounterUse:
      return fmt::format("{}{}: {} uses it, and nothing makes it wait for {}, which set it before{}", race.place,
                         race.tile < 0 ? "" : fmt::format(" of tile {}", race.tile), second, first, more);
    case Race::Kind::kMessages:
      return fmt::format("{}: lines of {} come after those of {} to {}, and nothing makes them wait{}", race.place,
                         second, first, race.tile < 0 ? "the scalar core" : fmt::format("tile {}", race.tile), more);
  }
  return "";
}

}  // namespace reef::device
