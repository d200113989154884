// SPDX-License-Identifier: Apache-2.0
#include "learn/embeddings.h"

#include <algorithm>
#include <cmath>

#include "learn/random.h"
#include "learn/vector_math.h"

namespace reef::learn {

std::vector<float> Embeddings::direction(std::size_t i) const {
  std::vector<float> result = normalized(row(i));
  if (!has_mirrored()) return result;
  const std::vector<float> other = normalized(mirrored_row(i));
  for (std::size_t k = 0; k < result.size(); ++k) result[k] += other[k];
  return normalized(result);
}

Status check_embeddings(const Embeddings& embeddings, int classes) {
  REEF_REQUIRE(embeddings.dimension > 0, "embeddings have {} dimensions", embeddings.dimension);
  REEF_REQUIRE(embeddings.values.size() == embeddings.size() * static_cast<std::size_t>(embeddings.dimension),
               "{} numbers are no {} embeddings of {} dimensions", embeddings.values.size(), embeddings.size(),
               embeddings.dimension);
  REEF_REQUIRE(!embeddings.has_mirrored() || embeddings.mirrored.size() == embeddings.values.size(),
               "{} numbers of mirrored pictures belong to {} of pictures", embeddings.mirrored.size(),
               embeddings.values.size());
  for (const float value : embeddings.mirrored) {
    REEF_REQUIRE(std::isfinite(value), "an embedding of a mirrored picture is not finite");
  }
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
  for (const std::size_t i : rows) {
    result.add(embeddings.row(i), embeddings.labels[i]);
    if (!embeddings.has_mirrored()) continue;
    const auto view = embeddings.mirrored_row(i);
    result.mirrored.insert(result.mirrored.end(), view.begin(), view.end());
  }
  return result;
}

std::vector<std::int64_t> images_per_class(const Embeddings& embeddings, int classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : embeddings.labels) ++counts[at(label)];
  return counts;
}

namespace {
// The rows of each class in an order drawn from `seed`.
std::vector<std::vector<std::size_t>> shuffled_classes(std::span<const std::int32_t> labels, int classes,
                                                       std::uint32_t seed) {
  std::vector<std::vector<std::size_t>> of_class(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < labels.size(); ++i) of_class[at(labels[i])].push_back(i);
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    Random random(seed + static_cast<std::uint32_t>(c));
    random.shuffle(of_class[c]);
  }
  return of_class;
}
}  // namespace

std::vector<Division> folds(std::span<const std::int32_t> labels, int classes, int count, std::uint32_t seed) {
  std::vector<std::size_t> fold_of(labels.size());
  std::size_t next = 0;  // goes on from class to class, so that small ones do not all fall into the first fold
  for (const std::vector<std::size_t>& rows : shuffled_classes(labels, classes, seed)) {
    for (const std::size_t row : rows) fold_of[row] = next++ % static_cast<std::size_t>(count);
  }
  std::vector<Division> result(static_cast<std::size_t>(count));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    for (std::size_t k = 0; k < result.size(); ++k) {
      (fold_of[row] == k ? result[k].held_back : result[k].train).push_back(row);
    }
  }
  return result;
}

Division divide(std::span<const std::int32_t> labels, int classes, double share, std::uint32_t seed) {
  Division result;
  for (const std::vector<std::size_t>& rows : shuffled_classes(labels, classes, seed)) {
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
