// SPDX-License-Identifier: Apache-2.0
#include "schedule/spills.h"

#include <algorithm>
#include <map>

namespace reef::schedule {
namespace {

using tiled::Lifetime;
using tiled::NarrowObject;
using tiled::TiledProgram;

// An object that is elsewhere between two steps that use it.
struct Absence {
  std::int32_t object = 0;
  std::int32_t after = 0, before = 0;  // steps
};

class Absences {
 public:
  explicit Absences(const TiledProgram& program) : program_(program), uses_(program.narrow.size()) {
    const auto use = [&](std::int32_t object, std::size_t step) {
      std::vector<std::int32_t>& steps = uses_[at(object)];
      if (steps.empty() || steps.back() != static_cast<std::int32_t>(step)) {
        steps.push_back(static_cast<std::int32_t>(step));
      }
    };
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const tiled::Step& step = program.steps[i];
      for (const auto* tensors : {&step.reads, &step.writes}) {
        for (const std::int32_t t : *tensors) use(program.tensor(t).object, i);
      }
      for (const std::int32_t object : step.narrow_used) use(object, i);
    }
    bytes_.assign(program.steps.size(), 0);
    for (const NarrowObject& object : program.narrow) add(object.life, object.bytes);
  }

  bool find(std::int64_t limit) {
    while (true) {
      const auto fullest = std::max_element(bytes_.begin(), bytes_.end());
      if (fullest == bytes_.end() || *fullest <= limit) return true;
      if (!remove_one(static_cast<std::int32_t>(fullest - bytes_.begin()))) return false;
    }
  }
  const std::vector<Absence>& found() const { return found_; }

 private:
  void add(const Lifetime& life, std::int64_t bytes) {
    if (life.first < 0) return;
    for (std::int32_t step = life.first; step <= life.last; ++step) bytes_[at(step)] += bytes;
  }
  bool is_away(std::int32_t object, std::int32_t step) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Absence& absence) {
      return absence.object == object && absence.after < step && step < absence.before;
    });
  }

  // The largest object that is there at a step and not used by it. At the highest level, the one that is not used for
  // the longest time: others would go and come back many times.
  bool remove_one(std::int32_t step) {
    Absence best;
    std::int64_t most = 0;
    std::int32_t longest = 0;
    const bool by_time = program_.level >= tiled::Level::kFast;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const auto object = static_cast<std::int32_t>(i);
      const auto next = std::lower_bound(uses_[i].begin(), uses_[i].end(), step);
      if (next == uses_[i].begin() || next == uses_[i].end() || *next == step || is_away(object, step)) continue;
      const std::int64_t bytes = program_.narrow[i].bytes;
      const std::int32_t absent = *next - *(next - 1);
      const bool is_better =
          by_time ? bytes > 0 && (absent > longest || (absent == longest && bytes > most)) : bytes > most;
      if (!is_better) continue;
      most = bytes;
      longest = absent;
      best = {object, *(next - 1), *next};
    }
    if (most == 0) return false;
    add({best.after + 1, best.before - 1}, -most);
    found_.push_back(best);
    return true;
  }

  const TiledProgram& program_;
  std::vector<std::vector<std::int32_t>> uses_;  // by object: steps, in order
  std::vector<std::int64_t> bytes_;              // by step
  std::vector<Absence> found_;
};

void include_absences(TiledProgram& program, const std::vector<Absence>& absences) {
  std::multimap<std::int32_t, std::size_t> leaves, returns;  // by step: absences
  std::vector<std::int32_t> lines;                           // by absence: wide objects
  for (std::size_t i = 0; i < absences.size(); ++i) {
    leaves.emplace(absences[i].after, i);
    returns.emplace(absences[i].before, i);
    lines.push_back(static_cast<std::int32_t>(program.wide.size()));
    const std::int64_t bytes = program.narrow[at(absences[i].object)].bytes;
    program.wide.push_back({.lines = (bytes + chip::kWideLineBytes - 1) / chip::kWideLineBytes});
  }
  std::vector<tiled::Step> steps;
  std::vector<std::int32_t> moved_to;           // by step
  std::vector<Lifetime> away(absences.size());  // in new steps, with both ends
  const auto add_spill = [&](std::size_t i, bool is_back) {
    tiled::Step step;
    step.work = tiled::Spill{absences[i].object, lines[i], is_back};
    step.narrow_used = {absences[i].object};
    step.wide_used = {lines[i]};
    away[i].include(static_cast<std::int32_t>(steps.size()));
    program.wide[at(lines[i])].life.include(static_cast<std::int32_t>(steps.size()));
    steps.push_back(std::move(step));
  };
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const auto step = static_cast<std::int32_t>(k);
    for (auto [i, end] = returns.equal_range(step); i != end; ++i) add_spill(i->second, true);
    moved_to.push_back(static_cast<std::int32_t>(steps.size()));
    steps.push_back(std::move(program.steps[k]));
    for (auto [i, end] = leaves.equal_range(step); i != end; ++i) add_spill(i->second, false);
  }
  program.steps = std::move(steps);
  const auto move = [&](std::int32_t& step) {
    if (step >= 0) step = moved_to[at(step)];
  };
  for (auto* border : {&program.inputs, &program.outputs}) {
    for (std::int32_t& step : *border) move(step);
  }
  for (NarrowObject& object : program.narrow) {
    move(object.life.first);
    move(object.life.last);
  }
  for (std::size_t i = 0; i + absences.size() < program.wide.size(); ++i) {
    move(program.wide[i].life.first);
    move(program.wide[i].life.last);
  }
  for (std::size_t i = 0; i < absences.size(); ++i) {
    program.narrow[at(absences[i].object)].away.push_back({away[i].first + 1, away[i].last - 1});
  }
  for (NarrowObject& object : program.narrow) {
    std::sort(object.away.begin(), object.away.end(),
              [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; });
  }
}

}  // namespace

bool put_aside(TiledProgram& program, std::int64_t limit) {
  Absences absences(program);
  if (!absences.find(limit)) return false;
  include_absences(program, absences.found());
  return true;
}

}  // namespace reef::schedule
