// SPDX-License-Identifier: Apache-2.0
// Which accesses to a memory are ordered by waits, fences and messages, and which merely happened in some order.
//
// Vector clocks: every agent (a unit, a dispatcher, the scalar core) counts its own moves and knows how many moves of
// every other one lie behind what it has waited for. An access is ordered after another one if the agent knows the
// other's move. Two accesses to one place by different agents, at least one of which writes, that are not ordered are a
// race: another speed of one unit changes what is read.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/at.h"
#include "chip/machine.h"

namespace reef::device {

// Units of a tile in the order of isa::Unit, then its dispatcher.
inline constexpr int kAgentsPerTile = chip::kTileUnits + 1;
inline constexpr int kDispatcher = chip::kTileUnits;
inline constexpr int kFirstHostAgent = chip::kTiles * kAgentsPerTile;  // infeed, pop, outfeed (HostUnitId)
inline constexpr int kCoreAgent = kFirstHostAgent + 3;
inline constexpr int kAgents = kCoreAgent + 1;
constexpr int agent_of(int tile, int unit) { return tile * kAgentsPerTile + unit; }
// -1: the scalar core or one of its units.
constexpr int tile_of_agent(int agent) { return agent < kFirstHostAgent ? agent / kAgentsPerTile : -1; }

using Clock = std::uint32_t;  // moves of one agent; runs are bounded far below its range, see Timeline
using Clocks = std::array<Clock, kAgents>;
using SharedClocks = std::shared_ptr<const Clocks>;

// The knowledge of one agent. Snapshots are shared by all that it tells before it learns something new.
class Knowledge {
 public:
  explicit Knowledge(int agent = 0) : agent_(agent) {}
  Clock now() const { return clocks_[at(agent_)]; }
  void tick() { ++clocks_[at(agent_)]; }
  bool knows(int agent, Clock clock) const { return clocks_[at(agent)] >= clock; }
  SharedClocks snapshot() {
    if (!snapshot_) snapshot_ = std::make_shared<const Clocks>(clocks_);
    return snapshot_;
  }
  // Everything that `agent` had done and known when its own count was `clock`.
  void learn(int agent, Clock clock, const SharedClocks& clocks);

 private:
  int agent_ = 0;
  Clocks clocks_{};
  SharedClocks snapshot_;  // null: what is known has changed since. The own count may be behind
};

struct Race {
  enum class Kind : std::uint8_t {
    kReadAfterWrite,
    kWriteAfterRead,
    kWriteAfterWrite,
    kMessages,
    kRingTurn,
    kCounterSet,
    kCounterUse
  } kind;
  std::string place;                                // "word 17 of narrow memory"
  int tile = -1;                                    // -1: the scalar core's FIFOs
  std::uint32_t first_index = 0, second_index = 0;  // instructions, in the order in which they came
  int first_agent = 0, second_agent = 0;
  // Simulated cycles between the two accesses. Below 0: in simulated time the second one came first.
  double slack = 0;
  std::uint64_t times = 1;  // this and tiles: kept by Races
  std::uint16_t tiles = 0;  // mask

  bool breaks_the_order() const { return slack < 0; }
};

// Collects races, one entry for each pair of instructions.
class Races {
 public:
  static constexpr std::size_t kMost = 1000;
  void add(Race race);
  const std::vector<Race>& all() const { return races_; }
  void clear() {
    races_.clear();
    index_.clear();
  }

 private:
  std::vector<Race> races_;
  std::map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>, std::size_t> index_;
};

// Last accesses to every place of a memory: who wrote it, and who has read it since.
class AccessLog {
 public:
  // `readers`: agents that ever read this memory.
  AccessLog(std::string name, std::size_t places, std::vector<int> readers);

  struct Access {
    const Knowledge* knowledge;
    double time;  // simulated cycles
    int agent;
    std::uint32_t index;  // of the instruction
  };
  void read(std::int64_t place, const Access& access, Races& races);
  void write(std::int64_t place, const Access& access, Races& races);

 private:
  struct LastAccess {
    Clock clock = 0;  // 0: never
    std::uint32_t index = 0;
    double time = 0;
    int agent = 0;
  };
  // Reports `first` unless it is ordered before `second`.
  void check(Race::Kind kind, std::int64_t place, const LastAccess& first, const Access& second, Races& races) const;

  std::string name_;
  std::vector<int> readers_;
  std::vector<LastAccess> writes_;
  std::vector<LastAccess> reads_;  // places x readers
};

}  // namespace reef::device
