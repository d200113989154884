// SPDX-License-Identifier: Apache-2.0
// Who knows of which steps of whom.
//
// An agent is whatever works strictly in order: a unit, the receiving half of a mesh unit, a dispatcher, the scalar
// core. It counts its steps, and knows of every other agent how many of its steps lie behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/at.h"
#include "chip/machine.h"

namespace reef::audit {

// Agents of a tile: its units in the order of isa::Unit, its dispatcher, the receiving halves of the four mesh units.
inline constexpr int kDispatcher = chip::kTileUnits;
inline constexpr int kFirstMeshReceiver = kDispatcher + 1;
inline constexpr int kAgentsPerTile = kFirstMeshReceiver + 4;
inline constexpr int kInfeedAgent = chip::kTiles * kAgentsPerTile, kPopAgent = kInfeedAgent + 1,
                     kOutfeedAgent = kInfeedAgent + 2, kCoreAgent = kInfeedAgent + 3, kAgents = kInfeedAgent + 4;
constexpr int agent_of(int tile, int unit) { return tile * kAgentsPerTile + unit; }
// -1: the scalar core and its units.
constexpr int tile_of(int agent) { return agent < kInfeedAgent ? agent / kAgentsPerTile : -1; }

using Clock = std::uint32_t;  // steps of one agent; walks are bounded far below its range
using Clocks = std::array<Clock, kAgents>;

// A moment of an agent, as others learn of it. Clock 0: no moment at all.
struct Stamp {
  int agent = 0;
  Clock clock = 0;
  std::uint32_t learned = 0;  // entries of its journal at that moment
};

// All that an agent has learned of others, in order, so that what it knew at any earlier moment need not be copied for
// those who may learn of that moment: they read on from where they stopped reading. Its own steps are not in it.
class Journal {
 public:
  struct Entry {
    std::uint32_t agent = 0;
    Clock clock = 0;
  };
  std::uint32_t size() const { return dropped_ + static_cast<std::uint32_t>(entries_.size()); }
  // Entries before this one are forgotten.
  std::uint32_t first() const { return dropped_; }
  const Entry& operator[](std::uint32_t i) const { return entries_[i - dropped_]; }
  void add(int agent, Clock clock) {
    entries_.push_back({static_cast<std::uint32_t>(agent), clock});
    if (entries_.size() >= kMostEntries) drop_half();
  }

 private:
  // A bound for programs that no compiler made.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 20;
  void drop_half() {
    entries_.erase(entries_.begin(), entries_.begin() + kMostEntries / 2);
    dropped_ += static_cast<std::uint32_t>(kMostEntries / 2);
  }
  std::vector<Entry> entries_;
  std::uint32_t dropped_ = 0;
};

class Agent {
 public:
  // `all`: the first of an array of all agents, by number.
  Agent(int number, const Agent* all) : number_(number), all_(all) {}
  int number() const { return number_; }
  Clock now() const { return known_[at(number_)]; }
  void tick(Clock steps = 1) { known_[at(number_)] += steps; }
  bool knows(int agent, Clock clock) const { return known_[at(agent)] >= clock; }
  bool knows(const Stamp& stamp) const { return knows(stamp.agent, stamp.clock); }
  Stamp stamp() const { return {number_, now(), journal_.size()}; }
  // Whoever knows a moment of another agent has learned all that this one knew then.
  void learn(const Stamp& stamp) {
    if (knows(stamp)) return;
    catch_up(all_[stamp.agent], stamp);
    raise(stamp.agent, stamp.clock);
  }
  void learn(const Agent& other) { learn(other.stamp()); }

  // Instructions begin with the step after the present one.
  void begin_instruction(std::uint32_t index) { begun_.emplace_back(now(), index); }
  // The instruction that a step belonged to. Precondition: one has begun before it.
  std::uint32_t instruction_at(Clock clock) const {
    auto after = std::lower_bound(begun_.begin(), begun_.end(), clock,
                                  [](const auto& entry, Clock c) { return entry.first < c; });
    return after == begun_.begin() ? 0 : std::prev(after)->second;
  }

 private:
  void raise(int agent, Clock clock) {
    Clock& known = known_[at(agent)];
    if (known >= clock) return;
    known = clock;
    journal_.add(agent, clock);
  }
  // Reads the other's journal from where this agent stopped. Entries that are forgotten prove nothing: what they said
  // stays unknown.
  void catch_up(const Agent& other, const Stamp& stamp) {
    const Journal& journal = other.journal_;
    std::uint32_t& read = read_[at(other.number_)];
    const std::uint32_t from = std::max(read, journal.first());
    read = std::max(read, stamp.learned);
    // It has learned nothing since: what it knows now is as good, and shorter.
    if (stamp.learned == journal.size() && stamp.learned - from > kAgents) {
      for (int i = 0; i < kAgents; ++i) {
        if (i != other.number_) raise(i, other.known_[at(i)]);
      }
      return;
    }
    for (std::uint32_t i = from; i < stamp.learned; ++i) {
      const Journal::Entry entry = journal[i];
      raise(static_cast<int>(entry.agent), entry.clock);
    }
  }

  int number_ = 0;
  const Agent* all_ = nullptr;
  Clocks known_{};
  std::array<std::uint32_t, kAgents> read_{};  // entries of each other agent's journal
  Journal journal_;
  std::vector<std::pair<Clock, std::uint32_t>> begun_;
};

}  // namespace reef::audit
