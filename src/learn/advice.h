// SPDX-License-Identifier: Apache-2.0
// Advice on a set of embeddings and on what was learned from it: how often it is right, which classes are
// taken for each other, which have too few pictures, and whether more pictures would help.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "learn/embeddings.h"

namespace reef::learn {

// counts[truth][answer]
struct Confusion {
  std::vector<std::vector<std::int64_t>> counts;
  std::int64_t total() const;
  std::int64_t right() const;
  double accuracy() const;                        // 0 where there is nothing
  std::vector<std::size_t> classes_seen() const;  // that were asked for or answered
};
Confusion confusion(const std::vector<std::int32_t>& truth, const std::vector<std::int32_t>& answers, int classes);

// Two classes that the embeddings hardly tell apart: of their pictures, so many lie nearer to the mean direction of
// their own class than to the other's, their own made without them. Half would be chance.
struct CollapsedPair {
  int a = 0, b = 0;
  double right = 0;   // share, 0.5 is chance
  double cosine = 0;  // between the two mean directions
};
inline constexpr double kCollapsedBelow = 0.7;
// Looks at classes of at least 4 rows. The worst pair first.
std::vector<CollapsedPair> collapsed_pairs(const Embeddings& embeddings, int classes);

// Sentences about classes with few or many pictures; empty where all is well.
std::vector<std::string> imbalance_notes(const std::vector<std::int64_t>& images,
                                         const std::vector<std::string>& class_names);

// Accuracy on `test` after learning from n pictures of each class, as a mean over several draws.
struct CurvePoint {
  int images = 0;  // of each class
  double accuracy = 0;
  double spread = 0;  // standard deviation over the draws
  int draws = 0;
};
using Learner = std::function<Result<std::vector<std::int32_t>>(const Embeddings& train, const Embeddings& test)>;
struct CurveOptions {
  std::vector<int> steps;  // empty: 1, 2, 5, 10, 20, 50, ... and all that the smallest class has
  int draws = 5;
  std::uint32_t seed = 1;
};
Result<std::vector<CurvePoint>> learning_curve(const Embeddings& train, const Embeddings& test, int classes,
                                               const Learner& learner, const CurveOptions& options = {});
// "from 50 to 100 pictures of each class accuracy rose by 2.1 points: more would probably help"; empty: nothing to say.
// Measured on so many samples, smaller differences than their standard error mean nothing.
std::string curve_advice(const std::vector<CurvePoint>& curve, std::size_t test_samples);

// The usual learner of a curve: nearest mean direction.
Result<std::vector<std::int32_t>> imprint_and_answer(const Embeddings& train, const Embeddings& test, int classes);

}  // namespace reef::learn
