// SPDX-License-Identifier: Apache-2.0
// Who knows of which steps of whom.
//
// An agent is whatever works strictly in order: a unit, the receiving half of a mesh unit, a dispatcher, the scalar
// core. It counts its steps, and knows of every other agent how many of its steps lie behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

// What an agent knew at some moment, shared by all that it told before it learned more.
class Snapshot {
 public:
  Snapshot() = default;
  explicit Snapshot(const Clocks& clocks) : body_(take_body()) {
    body_->clocks = clocks;
    body_->users = 1;
  }
  Snapshot(const Snapshot& other) : body_(other.body_) {
    if (body_ != nullptr) ++body_->users;
  }
  Snapshot(Snapshot&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Snapshot& operator=(Snapshot other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Snapshot() {
    if (body_ != nullptr && --body_->users == 0) leave_body(std::unique_ptr<Body>(body_));
  }
  const Clocks* get() const { return body_ == nullptr ? nullptr : &body_->clocks; }
  bool same_as(const Snapshot& other) const { return body_ == other.body_; }

 private:
  struct Body {
    Clocks clocks;
    std::int64_t users = 0;
  };
  // Bodies are made and given up with every other signal. A walk stays on one thread.
  static std::vector<std::unique_ptr<Body>>& spare_bodies() {
    static thread_local std::vector<std::unique_ptr<Body>> spare;
    return spare;
  }
  static constexpr std::size_t kMostSpare = 1024;
  static void leave_body(std::unique_ptr<Body> body) {
    if (spare_bodies().size() < kMostSpare) spare_bodies().push_back(std::move(body));
  }
  static Body* take_body() {
    auto& spare = spare_bodies();
    if (spare.empty()) return new Body;
    Body* body = spare.back().release();
    spare.pop_back();
    return body;
  }
  Body* body_ = nullptr;
};

// A moment of an agent, as others learn of it. Clock 0: no moment at all.
struct Stamp {
  int agent = 0;
  Clock clock = 0;
  Snapshot knew;
};

class Agent {
 public:
  explicit Agent(int number = 0) : number_(number) {}
  int number() const { return number_; }
  Clock now() const { return known_[static_cast<std::size_t>(number_)]; }
  void tick(Clock steps = 1) { known_[static_cast<std::size_t>(number_)] += steps; }
  bool knows(int agent, Clock clock) const { return known_[static_cast<std::size_t>(agent)] >= clock; }
  bool knows(const Stamp& stamp) const { return knows(stamp.agent, stamp.clock); }
  Stamp stamp() {
    if (snapshot_.get() == nullptr) snapshot_ = Snapshot(known_);
    return {number_, now(), snapshot_};
  }
  // Whoever knows a moment of another agent has learned all that this one knew then.
  void learn(const Stamp& stamp) {
    if (knows(stamp) || stamp.knew.get() == nullptr) return;
    // What it knew is learned once, however many of its moments are learned after that.
    if (!stamp.knew.same_as(learned_last_)) {
      const Clocks& other = *stamp.knew.get();
      for (std::size_t i = 0; i < known_.size(); ++i) known_[i] = std::max(known_[i], other[i]);
      learned_last_ = stamp.knew;
    }
    auto& own = known_[static_cast<std::size_t>(stamp.agent)];
    own = std::max(own, stamp.clock);
    snapshot_ = {};
  }
  void learn(Agent& other) { learn(other.stamp()); }

  // Instructions begin with the step after the present one.
  void begin_instruction(std::uint32_t index) { begun_.emplace_back(now(), index); }
  // The instruction that a step belonged to. Precondition: one has begun before it.
  std::uint32_t instruction_at(Clock clock) const {
    auto after = std::lower_bound(begun_.begin(), begun_.end(), clock,
                                  [](const auto& entry, Clock c) { return entry.first < c; });
    return after == begun_.begin() ? 0 : std::prev(after)->second;
  }

 private:
  int number_ = 0;
  Clocks known_{};
  Snapshot snapshot_;  // empty: what is known has changed since. Its own count may be behind
  Snapshot learned_last_;
  std::vector<std::pair<Clock, std::uint32_t>> begun_;
};

}  // namespace reef::audit
