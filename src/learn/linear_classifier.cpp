// SPDX-License-Identifier: Apache-2.0
#include "learn/linear_classifier.h"

#include <algorithm>

#include "base/at.h"
#include "learn/vector_math.h"

namespace reef::learn {

std::vector<float> LinearClassifier::scores(std::span<const float> embedding) const {
  std::vector<float> result;
  for (int c = 0; c < classes; ++c) result.push_back(dot(row(c), embedding) + biases[at(c)]);
  return result;
}

int LinearClassifier::best(std::span<const float> embedding) const { return index_of_largest(scores(embedding)); }

int index_of_largest(std::span<const float> scores) {
  return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

}  // namespace reef::learn
