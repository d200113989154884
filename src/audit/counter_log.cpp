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
    const bool continues = run.first.agent == stamp.agent && run.first.learned == stamp.learned;
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
  if (runs_.empty() || number > runs_.back().last_number) return false;
  // Mostly the run that was found last, or the next.
  const auto holds = [&](std::size_t at) {
    return runs_[at].last_number >= number && (at == 0 || runs_[at - 1].last_number < number);
  };
  auto run = runs_.begin() + static_cast<std::ptrdiff_t>(std::min(found_last_, runs_.size() - 1));
  const auto at = static_cast<std::size_t>(run - runs_.begin());
  if (at + 1 < runs_.size() && !holds(at) && holds(at + 1)) {
    ++run;
  } else if (!holds(at)) {
    run = std::lower_bound(runs_.begin(), runs_.end(), number,
                           [](const Run& r, std::int64_t n) { return r.last_number < n; });
  }
  found_last_ = static_cast<std::size_t>(run - runs_.begin());
  const std::int64_t steps = number - (run->last_number - run->count + 1);
  if (steps < 0) return false;
  stamp = run->first;
  stamp.clock += static_cast<Clock>(steps) * run->distance;
  return true;
}

std::int64_t CounterLog::known_to(const Agent& agent) const {
  // Signals are ordered, so who knows one knows those before it. Where they are not, which is a finding of its own,
  // this may find fewer than are known, never more.
  const auto behind =
      std::partition_point(runs_.begin(), runs_.end(), [&](const Run& run) { return agent.knows(run.first); });
  if (behind == runs_.begin()) return 0;
  const Run& run = *std::prev(behind);
  if (agent.knows(run.first.agent, run.last_clock())) return run.last_number;
  std::int64_t low = 0, high = run.count - 1;  // signal `low` is known, `high` is not
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    const Clock clock = run.first.clock + static_cast<Clock>(middle) * run.distance;
    (agent.knows(run.first.agent, clock) ? low : high) = middle;
  }
  return run.last_number - run.count + 1 + low;
}

void CounterLog::note_wait(const Agent& agent, std::int64_t number) {
  const auto asked_end = asked_.begin() + static_cast<std::ptrdiff_t>(agents_that_asked_);
  auto waits =
      std::find_if(asked_.begin(), asked_end, [&](const auto& list) { return list.front().agent == agent.number(); });
  if (waits == asked_end) {
    if (asked_end == asked_.end()) asked_.emplace_back();
    asked_[agents_that_asked_++].push_back({agent.number(), agent.now(), number});
    return;
  }
  Asked& last = waits->back();
  const Clock clock_step = agent.now() - last.clock;
  const std::int64_t number_step = number - last.number;
  if (clock_step == 0) {  // two waits of one step: the lower number stands for both
    if (number < last.number) {
      if (last.count == 1) {
        last.number = number;
      } else {
        --last.count;
        const Clock clock = last.clock;
        last.clock -= last.clock_step;
        last.number -= last.number_step;
        waits->push_back({agent.number(), clock, number});
      }
    }
    return;
  }
  if (last.count == 1 || (last.clock_step == clock_step && last.number_step == number_step)) {
    last.clock_step = clock_step;
    last.number_step = number_step;
    last.clock = agent.now();
    last.number = number;
    ++last.count;
    return;
  }
  waits->push_back({agent.number(), agent.now(), number});
  if (waits->size() <= kMostAsked) return;
  // The lowest number and the last moment stand for two runs: that demands more than is needed.
  Queue<Asked> fewer;
  for (std::size_t i = 0; i + 1 < waits->size(); i += 2) {
    const Asked &first = (*waits)[i], &second = (*waits)[i + 1];
    fewer.push_back({second.agent, second.clock, std::min(first.least_number(), second.least_number())});
  }
  if (waits->size() % 2 == 1) fewer.push_back(waits->back());
  *waits = std::move(fewer);
}

CounterLog::Outrun CounterLog::outrun(const Agent& signaller, std::int64_t lead) {
  for (std::size_t i = 0; i < agents_that_asked_; ++i) {
    Queue<Asked>& waits = asked_[i];
    while (total_ - waits.front().least_number() > lead) {
      Asked& front = waits.front();
      // A wait is over one step after the moment at which it was asked.
      if (!signaller.knows(front.agent, front.first_clock() + 1)) {
        if (total_ - front.first_number() > lead || front.number_step < 0) return {front.agent, front.first_clock()};
        break;
      }
      if (front.count > 1) {
        --front.count;
      } else if (waits.size() > 1) {
        waits.pop_front();
      } else {
        break;  // the list keeps its agent
      }
    }
  }
  return {};
}

void CounterLog::set(std::uint16_t value, const Stamp& by) {
  settings_.insert(settings_.begin(), {by, this->value()});
  if (settings_.size() > kMostSettings) settings_.pop_back();
  runs_.clear();
  last_ = {};
  total_ = 0;
  set_to_ = value;
  for (std::size_t i = 0; i < agents_that_asked_; ++i) asked_[i].clear();
  agents_that_asked_ = 0;
}

}  // namespace reef::audit
