// SPDX-License-Identifier: Apache-2.0
// One linear layer: a score for each class, score = weights * embedding + bias. What both kinds of learning end in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace reef::learn {

struct LinearClassifier {
  int classes = 0;
  int dimension = 0;
  std::vector<float> weights;  // a row for each class
  std::vector<float> biases;

  std::span<const float> row(int c) const {
    return std::span(weights).subspan(static_cast<std::size_t>(c) * static_cast<std::size_t>(dimension),
                                      static_cast<std::size_t>(dimension));
  }
  std::vector<float> scores(std::span<const float> embedding) const;
  int best(std::span<const float> embedding) const;  // of equals the first
};

int index_of_largest(std::span<const float> scores);

}  // namespace reef::learn
