// SPDX-License-Identifier: Apache-2.0
#include "schedule/first_fit.h"

#include <algorithm>
#include <numeric>

namespace reef::schedule {
namespace {

struct Taken {
  std::int64_t begin, end;
};

}  // namespace

std::vector<std::int64_t> first_fit(std::span<const Extent> extents, Largest largest) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) { return largest == Largest::kBySize ? extents[i].size : extents[i].area(); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  std::vector<std::int64_t> offsets(extents.size(), 0);
  std::vector<std::size_t> placed;
  std::vector<Taken> taken;
  for (const std::size_t index : order) {
    const Extent& extent = extents[index];
    taken.clear();
    for (const std::size_t other : placed) {
      if (extents[other].first > extent.last || extents[other].last < extent.first) continue;
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
