// SPDX-License-Identifier: Apache-2.0
#include "data/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace reef::data {

std::vector<std::int64_t> in_order(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order = in_order(count);
  // Fisher and Yates. Not std::shuffle, whose result is the library's own business; mt19937 is defined by the standard.
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

std::vector<std::int64_t> every_nth(const std::vector<std::int64_t>& order, std::int64_t index, std::int64_t count) {
  std::vector<std::int64_t> part;
  for (auto at = static_cast<std::size_t>(index); at < order.size(); at += static_cast<std::size_t>(count))
    part.push_back(order[at]);
  return part;
}

Split split(const std::shared_ptr<const SampleSource>& source, double held_back, std::uint32_t seed) {
  const std::int64_t count = source->size();
  auto back = static_cast<std::int64_t>(std::llround(static_cast<double>(count) * std::clamp(held_back, 0.0, 1.0)));
  if (count >= 2 && held_back > 0 && held_back < 1) back = std::clamp<std::int64_t>(back, 1, count - 1);
  std::vector<std::int64_t> order = shuffled(count, seed);
  const auto middle = order.begin() + back;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  return {std::make_shared<Subset>(source, std::vector<std::int64_t>(middle, order.end())),
          std::make_shared<Subset>(source, std::vector<std::int64_t>(order.begin(), middle))};
}

}  // namespace reef::data
