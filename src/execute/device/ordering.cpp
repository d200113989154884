// SPDX-License-Identifier: Apache-2.0
#include "execute/device/ordering.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/at.h"

namespace reef::device {

void Knowledge::learn(int agent, Clock clock, const SharedClocks& clocks) {
  bool is_new = false;
  if (clocks) {
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      is_new = is_new || (*clocks)[i] > clocks_[i];
      clocks_[i] = std::max(clocks_[i], (*clocks)[i]);
    }
  }
  Clock& own = clocks_[reef::at(agent)];
  if (clock > own) {
    own = clock;
    is_new = true;
  }
  if (is_new) snapshot_.reset();
}

void Races::add(Race race) {
  race.tiles = static_cast<std::uint16_t>(race.tile >= 0 ? 1u << race.tile : 0);
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
    : name_(std::move(name)), readers_(std::move(readers)), writes_(places), reads_(places * readers_.size()) {}

void AccessLog::check(Race::Kind kind, std::int64_t place, const LastAccess& first, const Access& second,
                      Races& races) const {
  if (first.clock == 0 || first.agent == second.agent || second.knowledge->knows(first.agent, first.clock)) return;
  races.add({.kind = kind,
             .place = fmt::format("{} {}", name_, place),
             .tile = tile_of_agent(second.agent),
             .first_index = first.index,
             .second_index = second.index,
             .first_agent = first.agent,
             .second_agent = second.agent,
             .slack = second.time - first.time});
}

void AccessLog::read(std::int64_t place, const Access& access, Races& races) {
  const auto at = static_cast<std::size_t>(place);
  check(Race::Kind::kReadAfterWrite, place, writes_[at], access, races);
  for (std::size_t r = 0; r < readers_.size(); ++r) {
    if (readers_[r] != access.agent) continue;
    reads_[at * readers_.size() + r] = {access.knowledge->now(), access.index, access.time, access.agent};
    return;
  }
}

void AccessLog::write(std::int64_t place, const Access& access, Races& races) {
  const auto at = static_cast<std::size_t>(place);
  check(Race::Kind::kWriteAfterWrite, place, writes_[at], access, races);
  for (std::size_t r = 0; r < readers_.size(); ++r) {
    LastAccess& read = reads_[at * readers_.size() + r];
    check(Race::Kind::kWriteAfterRead, place, read, access, races);
    read = {};
  }
  writes_[at] = {access.knowledge->now(), access.index, access.time, access.agent};
}

}  // namespace reef::device
