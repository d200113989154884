// SPDX-License-Identifier: Apache-2.0
// The last accesses to every place of a memory: who wrote it, and who has read it since.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "audit/clocks.h"
#include "base/at.h"

namespace reef::audit {

class PlaceLog {
 public:
  // `agents`: numbers in clocks.h of those who read this memory.
  PlaceLog(std::string_view name, std::int64_t places, int tile, std::vector<int> readers)
      : name_(name), places_(places), tile_(tile), readers_(std::move(readers)) {
    restart();
  }
  // Everything before is over: nothing can be in its way.
  void restart() {
    const auto count = static_cast<std::size_t>(places_);
    written_.assign(count, 0);
    writers_.assign(count, 0);
    reads_.assign(readers_.size(), {});
    for (auto& clocks : reads_) clocks.assign(count, 0);
    last_reads_.assign(readers_.size(), 0);
    last_writes_.clear();
  }
  std::string_view name() const { return name_; }
  int tile() const { return tile_; }
  bool holds(std::int64_t place) const { return place >= 0 && place < places_; }
  bool is_written(std::int64_t place) const { return written_[reef::at(place)] != 0; }

  // ---- Many places in a row ----
  // The checks of single accesses for `count` places from the first on, all within the memory. They are quick where one
  // agent wrote all of them; false means that the places must be looked at one by one, not that something is wrong.

  // The agent knows who wrote each of the places.
  bool knows_writes(std::int64_t place, std::int64_t count, const Agent& agent) const {
    if (knows_all_writes(agent)) return true;
    const auto at = static_cast<std::size_t>(place), end = at + static_cast<std::size_t>(count);
    const std::uint8_t writer = writers_[at];
    std::uint8_t others = 0;
    Clock last = 0;
    for (std::size_t i = at; i < end; ++i) others |= static_cast<std::uint8_t>(writers_[i] ^ writer);
    for (std::size_t i = at; i < end; ++i) last = std::max(last, written_[i]);
    if (others == 0) return agent.knows(writer, last);
    for (std::size_t i = at; i < end; ++i) {
      if (!agent.knows(writers_[i], written_[i])) return false;
    }
    return true;
  }
  // The agent knows who read each of the places since it was written.
  bool knows_reads(std::int64_t place, std::int64_t count, const Agent& agent) const {
    const auto at = static_cast<std::size_t>(place), end = at + static_cast<std::size_t>(count);
    for (std::size_t r = 0; r < readers_.size(); ++r) {
      if (agent.knows(readers_[r], last_reads_[r])) continue;  // whatever it read
      const Clock* reads = reads_[r].data();
      Clock last = 0;
      for (std::size_t i = at; i < end; ++i) last = std::max(last, reads[i]);
      if (!agent.knows(readers_[r], last)) return false;
    }
    return true;
  }
  void note_reads(std::int64_t place, std::int64_t count, const Agent& agent, std::size_t reader) {
    last_reads_[reader] = agent.now();
    std::fill_n(reads_[reader].begin() + place, count, agent.now());
  }
  void note_writes(std::int64_t place, std::int64_t count, const Agent& agent) {
    note_last_write(agent);
    std::fill_n(written_.begin() + place, count, agent.now());
    std::fill_n(writers_.begin() + place, count, static_cast<std::uint8_t>(agent.number()));
  }

  // ---- One place ----

  struct Conflict {
    int agent = -1;  // -1: none
    Clock clock = 0;
  };
  // A write that the reader does not know of. `reader`: index in the list of readers.
  Conflict read(std::int64_t place, const Agent& agent, std::size_t reader) {
    const auto at = static_cast<std::size_t>(place);
    last_reads_[reader] = reads_[reader][at] = agent.now();
    const Clock clock = written_[at];
    if (clock == 0 || agent.knows(writers_[at], clock)) return {};
    return {writers_[at], clock};
  }
  // A read (or, in `other_write`, a write) that the writer does not know of. An agent always knows its own.
  Conflict write(std::int64_t place, const Agent& agent, Conflict& other_write) {
    const auto at = static_cast<std::size_t>(place);
    Conflict conflict;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      if (!agent.knows(readers_[i], reads_[i][at])) conflict = {readers_[i], reads_[i][at]};
    }
    if (!agent.knows(writers_[at], written_[at])) other_write = {writers_[at], written_[at]};
    note_last_write(agent);
    written_[at] = agent.now();
    writers_[at] = static_cast<std::uint8_t>(agent.number());
    return conflict;
  }

 private:
  // The last write of an agent to any place; a memory has few writers.
  struct LastWrite {
    int agent = 0;
    Clock clock = 0;
  };
  void note_last_write(const Agent& agent) {
    for (LastWrite& last : last_writes_) {
      if (last.agent != agent.number()) continue;
      last.clock = agent.now();
      return;
    }
    last_writes_.push_back({agent.number(), agent.now()});
  }
  bool knows_all_writes(const Agent& agent) const {
    return std::all_of(last_writes_.begin(), last_writes_.end(),
                       [&](const LastWrite& last) { return agent.knows(last.agent, last.clock); });
  }

  static_assert(kAgents <= 256);
  std::string_view name_;
  std::int64_t places_;
  int tile_;
  std::vector<int> readers_;
  std::vector<Clock> written_;  // 0: not by this program
  std::vector<std::uint8_t> writers_;
  std::vector<std::vector<Clock>> reads_;  // by reader
  std::vector<Clock> last_reads_;          // of any place, by reader
  std::vector<LastWrite> last_writes_;
};

}  // namespace reef::audit
