// SPDX-License-Identifier: Apache-2.0
#include "execute/device/ordering.h"

#include <algorithm>

#include <fmt/format.h>

namespace reef::device {

void Knowledge::learn(int agent, Clock clock, const SharedClocks& clocks) {
  bool is_new = false;
  if (clocks) {
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      is_new = is_new || (*clocks)[i] > clocks_[i];
      clocks_[i] = std::max(clocks_[i], (*clocks)[i]);
    }
  }
  Clock& own = clocks_[static_cast<std::size_t>(agent)];
  if (clock > own) {
    own = clock;
    is_new = true;
  }
  if (is_new) snapshot_.reset();
}

void Races::add(const Race& race) {
  const auto key = std::tuple(static_cast<std::uint8_t>(race.kind), race.first_index, race.second_index);
  const auto [at, is_new] = index_.try_emplace(key, races_.size());
  if (!is_new) {
    Race& known = races_[at->second];
    ++known.times;
    // The tightest of them is shown.
    if (race.slack < known.slack) {
      const std::uint64_t times = known.times;
      const std::uint16_t tiles = known.tiles;
      known = race;
      known.times = times;
      known.tiles = tiles;
    }
    known.tiles |= race.tiles;
  } else if (races_.size() < kMost) {
    races_.push_back(race);
  } else {
    index_.erase(at);
  }
}

AccessLog::AccessLog(std::string name, std::size_t places, std::vector<int> readers)
    : name_(std::move(name)),
      readers_(std::move(readers)),
      writes_(places),
      writers_(places),
      reads_(places * readers_.size()),
      read_agents_(readers_.size()) {}

void AccessLog::report(Race::Kind kind, std::int64_t place, const Stamp& first, int first_agent, const Access& second,
                       Races& races) const {
  races.add({kind, fmt::format("{} {}", name_, place), second.tile, first.index, second.index, first_agent,
             second.agent, second.time - first.time, 1,
             static_cast<std::uint16_t>(second.tile >= 0 ? 1u << second.tile : 0)});
}

void AccessLog::read(std::int64_t place, const Access& access, Races& races) {
  if (!holds(place)) return;
  const auto at = static_cast<std::size_t>(place);
  const Stamp& written = writes_[at];
  if (written.clock != 0 && writers_[at] != access.agent && !access.knowledge->knows(writers_[at], written.clock)) {
    report(Race::Kind::kReadAfterWrite, place, written, writers_[at], access, races);
  }
  for (std::size_t r = 0; r < readers_.size(); ++r) {
    if (readers_[r] != access.local_agent) continue;
    reads_[at * readers_.size() + r] = {access.knowledge->now(), access.index, access.time};
    read_agents_[r] = static_cast<std::int16_t>(access.agent);
    return;
  }
}

void AccessLog::write(std::int64_t place, const Access& access, Races& races) {
  if (!holds(place)) return;
  const auto at = static_cast<std::size_t>(place);
  Stamp& written = writes_[at];
  if (written.clock != 0 && writers_[at] != access.agent && !access.knowledge->knows(writers_[at], written.clock)) {
    report(Race::Kind::kWriteAfterWrite, place, written, writers_[at], access, races);
  }
  for (std::size_t r = 0; r < readers_.size(); ++r) {
    Stamp& read = reads_[at * readers_.size() + r];
    if (read.clock == 0) continue;
    if (read_agents_[r] != access.agent && !access.knowledge->knows(read_agents_[r], read.clock)) {
      report(Race::Kind::kWriteAfterRead, place, read, read_agents_[r], access, races);
    }
    read = {};
  }
  written = {access.knowledge->now(), access.index, access.time};
  writers_[at] = static_cast<std::int16_t>(access.agent);
}

}  // namespace reef::device
