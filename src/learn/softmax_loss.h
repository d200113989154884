// SPDX-License-Identifier: Apache-2.0
// The loss of softmax regression and its gradient, over all rows or some. Where mirrored views are known, a picture's
// loss is the mean over its two views.
//
// Rows are added up in blocks that depend on their number alone, and blocks in order, so that any number of threads
// gives the same bits.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "learn/embeddings.h"

namespace reef::learn {

// Parameters are one vector: weights, a row for each class, then biases.
class SoftmaxLoss {
 public:
  // `embeddings` and `pool` must outlive this. `class_weights`: one for each class. Without a pool all is done by the
  // caller's thread.
  SoftmaxLoss(const Embeddings& embeddings, int classes, std::vector<double> class_weights, double l2,
              ThreadPool* pool = nullptr);

  std::size_t parameters() const { return static_cast<std::size_t>(classes_) * (dimension_ + 1); }

  // The loss over `rows` (all of them if empty), regularization included. `gradient`, if given, has parameters()
  // elements.
  double evaluate(const std::vector<float>& x, std::vector<float>* gradient,
                  std::span<const std::size_t> rows = {}) const;

 private:
  struct Sum {
    double loss = 0, weight = 0;
    std::vector<float> gradient;
  };
  double add_view(const std::vector<float>& x, std::span<const float> view, std::size_t label, double weight,
                  std::vector<float>* gradient) const;
  void add_rows(const std::vector<float>& x, std::size_t begin, std::size_t end, std::span<const std::size_t> rows,
                std::vector<float>* gradient, Sum& sum) const;

  const Embeddings* embeddings_;
  int classes_;
  std::size_t dimension_;
  std::vector<double> class_weights_;
  double l2_;
  ThreadPool* pool_;
};

}  // namespace reef::learn
