// SPDX-License-Identifier: Apache-2.0
#include "learn/embeddings.h"

#include <algorithm>
#include <cmath>

#include "learn/random.h"

namespace reef::learn {

Status check_embeddings(const Embeddings& embeddings, int classes) {
  REEF_REQUIRE(embeddings.dimension > 0, "embeddings have {} dimensions", embeddings.dimension);
  REEF_REQUIRE(embeddings.values.size() == embeddings.size() * static_cast<std::size_t>(embeddings.dimension),
               "{} numbers are no {} embeddings of {} dimensions", embeddings.values.size(), embeddings.size(),
               embeddings.dimension);
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    REEF_REQUIRE(embeddings.labels[i] >= 0 && embeddings.labels[i] < classes,
                 "embedding {} is of class {}, but there are {} classes", i, embeddings.labels[i], classes);
    for (const float value : embeddings.row(i)) REEF_REQUIRE(std::isfinite(value), "embedding {} is not finite", i);
  }
  return ok_status();
}

Embeddings chosen(const Embeddings& embeddings, std::span<const std::size_t> rows) {
  Embeddings result;
  result.dimension = embeddings.dimension;
  for (const std::size_t i : rows) result.add(embeddings.row(i), embeddings.labels[i]);
  return result;
}

std::vector<std::int64_t> images_per_class(const Embeddings& embeddings, int classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : embeddings.labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

Division divide(std::span<const std::int32_t> labels, int classes, double share, std::uint32_t seed) {
  std::vector<std::vector<std::size_t>> of_class(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < labels.size(); ++i) of_class[static_cast<std::size_t>(labels[i])].push_back(i);
  Division result;
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    std::vector<std::size_t>& rows = of_class[c];
    Random random(seed + static_cast<std::uint32_t>(c));
    random.shuffle(rows);
    const auto held = rows.empty()
                          ? 0
                          : std::min(rows.size() - 1,
                                     static_cast<std::size_t>(std::lround(share * static_cast<double>(rows.size()))));
    const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(held);
    result.held_back.insert(result.held_back.end(), rows.begin(), middle);
    result.train.insert(result.train.end(), middle, rows.end());
  }
  std::sort(result.train.begin(), result.train.end());
  std::sort(result.held_back.begin(), result.held_back.end());
  return result;
}

}  // namespace reef::learn
