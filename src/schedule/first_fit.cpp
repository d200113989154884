// SPDX-License-Identifier: Apache-2.0
#include "schedule/first_fit.h"

#include <algorithm>
#include <numeric>

#include "base/at.h"

namespace reef::schedule {
namespace {

struct Taken {
  std::int64_t begin, end;
};

bool exist_together(const Extent& a, const Extent& b) {
  if (a.first > b.last || b.first > a.last) return false;
  if (a.away.empty() && b.away.empty()) return true;
  for (const tiled::Lifetime& mine : tiled::presences({a.first, a.last}, a.away)) {
    for (const tiled::Lifetime& theirs : tiled::presences({b.first, b.last}, b.away)) {
      if (mine.overlaps(theirs)) return true;
    }
  }
  return false;
}

std::int64_t duration(const Extent& extent) { return std::int64_t{extent.last} - extent.first + 1; }

// By extent: the most that exists at one of its steps.
std::vector<std::int64_t> breadths(std::span<const Extent> extents) {
  std::int32_t steps = 0;
  for (const Extent& extent : extents) steps = std::max(steps, extent.last + 1);
  std::vector<std::int64_t> at(static_cast<std::size_t>(steps), 0);
  for (const Extent& extent : extents) {
    for (std::int32_t step = std::max(0, extent.first); step <= extent.last; ++step) {
      at[reef::at(step)] += extent.size;
    }
  }
  std::vector<std::int64_t> most(extents.size(), 0);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    for (std::int32_t step = std::max(0, extents[i].first); step <= extents[i].last; ++step) {
      most[i] = std::max(most[i], at[reef::at(step)]);
    }
  }
  return most;
}

std::vector<std::size_t> ordered(std::span<const Extent> extents, FitOrder how) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto by = [&](const auto& before) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return before(a, b); });
  };
  const auto larger = [&](std::size_t a, std::size_t b) { return extents[a].size > extents[b].size; };
  switch (how) {
    case FitOrder::kSize:
      by(larger);
      break;
    case FitOrder::kArea:
      by([&](std::size_t a, std::size_t b) { return extents[a].area() > extents[b].area(); });
      break;
    case FitOrder::kDuration:
      by(larger);
      by([&](std::size_t a, std::size_t b) { return duration(extents[a]) > duration(extents[b]); });
      break;
    case FitOrder::kBreadth: {
      const std::vector<std::int64_t> breadth = breadths(extents);
      by(larger);
      by([&](std::size_t a, std::size_t b) { return breadth[a] > breadth[b]; });
      break;
    }
    case FitOrder::kExecution:
      by([&](std::size_t a, std::size_t b) { return extents[a].first < extents[b].first; });
      break;
  }
  return order;
}

}  // namespace

std::vector<std::int64_t> first_fit(std::span<const Extent> extents, FitOrder how) {
  const std::vector<std::size_t> order = ordered(extents, how);
  std::vector<std::int64_t> offsets(extents.size(), 0);
  std::vector<std::size_t> placed;
  std::vector<Taken> taken;
  for (const std::size_t index : order) {
    const Extent& extent = extents[index];
    taken.clear();
    for (const std::size_t other : placed) {
      if (!exist_together(extents[other], extent)) continue;
      taken.push_back({offsets[other], offsets[other] + extents[other].size});
    }
    std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
    std::int64_t at = 0;
    for (const Taken& other : taken) {
      if (other.begin >= at + extent.size) break;
      at = std::max(at, other.end);
    }
    offsets[index] = at;
    placed.push_back(index);
  }
  return offsets;
}

}  // namespace reef::schedule
