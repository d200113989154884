// SPDX-License-Identifier: Apache-2.0
#include "learn/mirror.h"

#include <cmath>
#include <vector>

#include "learn/imprinting.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

// Were mirrored pictures equally hard, right - mirrored_right would have a standard deviation of sqrt(changed). A tenth
// of harmless data is then refused its mirror; data of which two classes are each other's mirror never gets it.
constexpr double kDeviations = 1.28;

// Is a view of picture `own` of class `label` nearest to that class, made without the picture?
bool is_recognised(const std::vector<ImprintedClass>& sums, const std::vector<std::vector<float>>& weights,
                   std::span<const float> view, std::span<const float> own, std::size_t label) {
  const std::vector<float> row = normalized(view);
  const ImprintedClass& mine = sums[label];
  const double similar = mine.images > 1 ? cosine_left_out(mine.sum, mine.sum_length(), row, normalized(own))
                                         : static_cast<double>(dot(weights[label], row));
  for (std::size_t c = 0; c < weights.size(); ++c) {
    if (c != label && sums[c].images > 0 && dot(weights[c], row) >= similar) return false;
  }
  return true;
}

}  // namespace

bool MirrorTest::is_same_class() const {
  return static_cast<double>(right - mirrored_right) <= kDeviations * std::sqrt(static_cast<double>(changed));
}

MirrorTest test_mirrored(const Embeddings& embeddings, int classes) {
  std::vector<ImprintedClass> sums(static_cast<std::size_t>(classes));
  for (ImprintedClass& each : sums) each.sum.resize(static_cast<std::size_t>(embeddings.dimension));
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    ImprintedClass& own = sums[at(embeddings.labels[i])];
    const std::vector<float> row = normalized(embeddings.row(i));
    for (std::size_t k = 0; k < row.size(); ++k) own.sum[k] += row[k];
    ++own.images;
  }
  std::vector<std::vector<float>> weights;
  for (const ImprintedClass& each : sums) weights.push_back(each.weights());
  MirrorTest test;
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    const auto label = static_cast<std::size_t>(embeddings.labels[i]);
    const auto own = embeddings.row(i);
    const bool is_right = is_recognised(sums, weights, own, own, label);
    const bool is_mirrored_right = is_recognised(sums, weights, embeddings.mirrored_row(i), own, label);
    ++test.pictures;
    test.right += is_right ? 1 : 0;
    test.mirrored_right += is_mirrored_right ? 1 : 0;
    test.changed += is_right != is_mirrored_right ? 1 : 0;
  }
  return test;
}

}  // namespace reef::learn
