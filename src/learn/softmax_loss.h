// SPDX-License-Identifier: Apache-2.0
// The loss of softmax regression and its gradient, over all rows or some. Where mirrored views are known, a picture's
// loss is the mean over its two views.
#pragma once

#include <span>
#include <vector>

#include "learn/embeddings.h"

namespace reef::learn {

// Parameters are one vector: weights, a row for each class, then biases.
class SoftmaxLoss {
 public:
  // `embeddings` must outlive this. `class_weights`: one for each class.
  SoftmaxLoss(const Embeddings& embeddings, int classes, std::vector<double> class_weights, double l2);

  std::size_t parameters() const { return static_cast<std::size_t>(classes_) * (dimension_ + 1); }
  void set_l2(double l2) { l2_ = l2; }

  // The loss over `rows` (all of them if empty), regularization included. `gradient`, if given, has parameters()
  // elements.
  double evaluate(const std::vector<float>& x, std::vector<float>* gradient,
                  std::span<const std::size_t> rows = {}) const;

 private:
  double add_view(const std::vector<float>& x, std::span<const float> view, std::size_t label, double weight,
                  std::vector<float>* gradient) const;

  const Embeddings* embeddings_;
  int classes_;
  std::size_t dimension_;
  std::vector<double> class_weights_;
  double l2_;
};

}  // namespace reef::learn
