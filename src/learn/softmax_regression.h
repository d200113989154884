// SPDX-License-Identifier: Apache-2.0
// Softmax regression on embeddings: the last layer by minimizing
//
//   sum of class_weight * cross entropy / sum of class_weight  +  l2 / 2 * sum of squared weights (not biases)
//
// Embeddings are divided by their mean length first, and the weights by it afterwards, so that `l2` and
// `learning_rate` mean the same whatever the network's numbers are. By L-BFGS (default) or mini-batch SGD with
// momentum. How long to train, and how strongly to regularize where that is not given, is decided by cross-validation:
// one part of the rows after another is held back, at least two and at least 300 rows if there are. The strength is the
// one whose minima fit those rows best. Under a given strength, and with SGD, training stops early where most parts
// held back have been getting worse for `patience` iterations (SGD: not better). Then all rows are trained with what
// was decided. Classes with fewer than kRowsToHoldBack rows cannot spare any: if one such exists nothing is held back.
// Mirrored views are trained with, never validated with. Same rows and options, same weights.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "learn/embeddings.h"
#include "learn/linear_classifier.h"

namespace reef::learn {

enum class Solver { kLbfgs, kSgd };

inline constexpr std::int64_t kRowsToHoldBack = 5;

struct SoftmaxOptions {
  Solver solver = Solver::kLbfgs;
  std::optional<double> l2;           // nothing: chosen on the part held back, or kDefaultL2 where there is none
  int max_iterations = 200;           // steps of L-BFGS, passes over all rows for SGD
  double learning_rate = 2;           // SGD
  double momentum = 0.9;              // SGD
  int batch_size = 32;                // SGD
  double held_back = 0.2;             // share of the rows at a time, 0.1 to 0.5; 0: train for max_iterations
  int patience = 10;                  // iterations to wait for a smaller loss on the part held back
  bool are_classes_balanced = false;  // class_weight = rows / (classes * rows of the class)
  std::vector<double> class_weights;  // instead; one for each class
  std::uint32_t seed = 1;
  int threads = 1;  // that add up gradients; the weights do not depend on it
  // Told after each iteration of every run; false ends training with an error.
  std::function<bool(int iteration, double loss)> progress;
};
inline constexpr double kDefaultL2 = 1e-3;

struct SoftmaxResult {
  LinearClassifier classifier;
  double l2 = 0;
  int iterations = 0;  // of the last training
  double loss = 0;     // at its end
  bool has_stopped_early = false;
  std::int64_t rows_held_back = 0;  // at a time, while it was decided how to train
};

Result<SoftmaxResult> train_softmax(const Embeddings& embeddings, int classes, const SoftmaxOptions& options);

}  // namespace reef::learn
