// SPDX-License-Identifier: Apache-2.0
#include "audit/counter_log.h"

#include <algorithm>

namespace reef::audit {

void CounterLog::begin(std::uint16_t value) {
  *this = {};
  set_to_ = initial = value;
}

void CounterLog::add(const Stamp& stamp, std::int64_t count) {
  if (count <= 0) return;
  total_ += count;
  last_ = stamp;
  if (!runs_.empty() && count == 1) {
    Run& run = runs_.back();
    const bool continues = run.first.agent == stamp.agent && run.first.knew.same_as(stamp.knew);
    const Clock distance = stamp.clock - run.last_clock();
    if (continues && (run.count == 1 || run.distance == distance)) {
      run.distance = distance;
      ++run.count;
      run.last_number = total_;
      return;
    }
  }
  runs_.push_back({stamp, total_, count, 0});
  if (runs_.size() > kMostRuns) runs_.pop_front();
}

bool CounterLog::find(std::int64_t number, Stamp& stamp) const {
  const auto run = std::lower_bound(runs_.begin(), runs_.end(), number,
                                    [](const Run& r, std::int64_t n) { return r.last_number < n; });
  if (run == runs_.end()) return false;
  const std::int64_t steps = number - (run->last_number - run->count + 1);
  if (steps < 0) return false;
  stamp = run->first;
  stamp.clock += static_cast<Clock>(steps) * run->distance;
  return true;
}

std::int64_t CounterLog::known_to(const Agent& agent) const {
  // Signals are ordered, so who knows one knows those before it.
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (!agent.knows(run->first)) continue;
    if (agent.knows(run->first.agent, run->last_clock())) return run->last_number;
    std::int64_t low = 0, high = run->count - 1;  // signal `low` is known, `high` is not
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      const Clock clock = run->first.clock + static_cast<Clock>(middle) * run->distance;
      (agent.knows(run->first.agent, clock) ? low : high) = middle;
    }
    return run->last_number - run->count + 1 + low;
  }
  return 0;
}

void CounterLog::note_wait(const Agent& agent, std::int64_t number) {
  auto waits = std::find_if(asked_.begin(), asked_.end(),
                            [&](const auto& list) { return list.front().agent == agent.number(); });
  if (waits == asked_.end()) {
    asked_.push_back({{agent.number(), agent.now(), number}});
    return;
  }
  // Of two waits at one moment, and of old ones that there are too many of, the earlier number and the later moment
  // stand for both: that demands more than is needed.
  const auto merge = [](Asked& into, const Asked& later) {
    into.clock = later.clock;
    into.number = std::min(into.number, later.number);
  };
  const Asked asked{agent.number(), agent.now(), number};
  if (waits->back().clock == asked.clock) return merge(waits->back(), asked);
  waits->push_back(asked);
  if (waits->size() <= kMostAsked) return;
  std::deque<Asked> fewer;
  for (std::size_t i = 0; i < waits->size(); ++i) {
    if (i % 2 == 1) {
      merge(fewer.back(), (*waits)[i]);
    } else {
      fewer.push_back((*waits)[i]);
    }
  }
  *waits = std::move(fewer);
}

const CounterLog::Asked* CounterLog::outrun(const Agent& signaller, std::int64_t lead) {
  for (auto& waits : asked_) {
    while (total_ - waits.front().number > lead) {
      // A wait is over one step after the moment at which it was asked.
      if (!signaller.knows(waits.front().agent, waits.front().clock + 1)) return &waits.front();
      if (waits.size() == 1) break;  // the list keeps its agent
      waits.pop_front();
    }
  }
  return nullptr;
}

void CounterLog::set(std::uint16_t value, const Stamp& by) {
  settings_.push_front({by, this->value()});
  if (settings_.size() > kMostSettings) settings_.pop_back();
  runs_.clear();
  last_ = {};
  total_ = 0;
  set_to_ = value;
  asked_.clear();
}

}  // namespace reef::audit
