// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/arena_planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace reef::cpu {
namespace {

// Placement is quadratic in the number of items; above this many, one order has to do.
constexpr std::size_t kManyItems = 20000;
// Limits on the work of improving a plan, in visits of an item: some milliseconds.
constexpr std::size_t kMostVisits = 4'000'000;
constexpr std::size_t kMostImprovements = 200;

std::int64_t round_up(std::int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool lives_overlap(const ArenaItem& a, const ArenaItem& b) { return a.first <= b.last && b.first <= a.last; }

std::int64_t largest_live_set(const std::vector<ArenaItem>& items) {
  std::map<std::int32_t, std::int64_t> change;  // step -> bytes that come alive minus bytes that ended before it
  for (const ArenaItem& item : items) {
    change[item.first] += round_up(item.bytes);
    change[item.last + 1] -= round_up(item.bytes);
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

// Places items in the given order. `placed` is kept sorted by offset so that gaps are found in one sweep.
ArenaPlan place_in_order(const std::vector<ArenaItem>& items, const std::vector<std::size_t>& order) {
  ArenaPlan plan;
  plan.offsets.assign(items.size(), 0);
  std::vector<std::size_t> placed;
  for (const std::size_t i : order) {
    const std::int64_t size = round_up(items[i].bytes);
    if (size == 0) continue;
    std::int64_t best = 0, best_gap = -1, end = 0;
    for (const std::size_t other : placed) {
      if (!lives_overlap(items[i], items[other])) continue;
      const std::int64_t gap = plan.offsets[other] - end;
      if (gap >= size && (best_gap < 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, plan.offsets[other] + round_up(items[other].bytes));
    }
    const std::int64_t offset = best_gap >= 0 ? best : end;
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + size);
    const auto by_offset = [&](std::size_t a, std::int64_t value) { return plan.offsets[a] < value; };
    placed.insert(std::lower_bound(placed.begin(), placed.end(), offset, by_offset), i);
  }
  return plan;
}

// The item on top makes the arena large: it is placed first the next time, and so on until the lower bound is reached
// or enough was tried.
void improve(const std::vector<ArenaItem>& items, std::vector<std::size_t> order, std::int64_t lower_bound,
             ArenaPlan& best) {
  std::erase_if(order, [&](std::size_t i) { return items[i].bytes == 0; });
  const std::size_t visits = std::max<std::size_t>(order.size() * order.size(), 1);
  const std::size_t tries = std::min(kMostImprovements, kMostVisits / visits);
  for (std::size_t n = 0; n < tries && best.bytes > lower_bound; ++n) {
    ArenaPlan plan = place_in_order(items, order);
    const auto is_on_top = [&](std::size_t i) { return plan.offsets[i] + round_up(items[i].bytes) == plan.bytes; };
    std::stable_partition(order.begin(), order.end(), is_on_top);
    if (plan.bytes < best.bytes) best = std::move(plan);
  }
}

}  // namespace

ArenaPlan plan_arena(const std::vector<ArenaItem>& items) {
  const auto length = [&](std::size_t i) { return std::int64_t{items[i].last} - items[i].first; };
  // Each order as a sort key; ties are broken by index, so the result does not depend on the sort's stability.
  using Key = std::tuple<std::int64_t, std::int64_t, std::size_t>;
  const auto by_size = [&](std::size_t i) { return Key{-items[i].bytes, items[i].first, i}; };
  const auto by_time = [&](std::size_t i) { return Key{items[i].first, -items[i].bytes, i}; };
  const auto by_length = [&](std::size_t i) { return Key{-length(i), -items[i].bytes, i}; };
  const auto by_area = [&](std::size_t i) { return Key{-items[i].bytes * (length(i) + 1), items[i].first, i}; };

  ArenaPlan best;
  std::vector<std::size_t> best_order;
  const std::int64_t lower_bound = largest_live_set(items);
  const auto attempt = [&](const auto& key) {
    if (!best.offsets.empty() && (best.bytes == lower_bound || items.size() > kManyItems)) return;
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    ArenaPlan plan = place_in_order(items, order);
    if (!best.offsets.empty() && plan.bytes >= best.bytes) return;
    best = std::move(plan);
    best_order = std::move(order);
  };
  attempt(by_size);
  attempt(by_length);
  attempt(by_time);
  attempt(by_area);
  improve(items, std::move(best_order), lower_bound, best);
  best.largest_live_set_bytes = lower_bound;
  return best;
}

}  // namespace reef::cpu
