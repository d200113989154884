// SPDX-License-Identifier: Apache-2.0
#include "learn/softmax_loss.h"

#include <algorithm>
#include <cmath>

#include "learn/vector_math.h"

namespace reef::learn {

SoftmaxLoss::SoftmaxLoss(const Embeddings& embeddings, int classes, std::vector<double> class_weights, double l2,
                         ThreadPool* pool)
    : embeddings_(&embeddings),
      classes_(classes),
      dimension_(static_cast<std::size_t>(embeddings.dimension)),
      class_weights_(std::move(class_weights)),
      l2_(l2),
      pool_(pool) {}

// The view's cross entropy times its weight; its gradient, weighted alike, is added.
double SoftmaxLoss::add_view(const std::vector<float>& x, std::span<const float> view, std::size_t label, double weight,
                             std::vector<float>* gradient) const {
  const auto classes = static_cast<std::size_t>(classes_);
  const float* embedding = view.data();
  const float* biases = x.data() + classes * dimension_;
  std::vector<float> shares(classes);
  for (std::size_t c = 0; c < classes; ++c) {
    shares[c] = dot(x.data() + c * dimension_, embedding, dimension_) + biases[c];
  }
  const float largest = *std::max_element(shares.begin(), shares.end());
  const double own = shares[label] - largest;
  double sum = 0;
  for (float& share : shares) sum += share = std::exp(share - largest);
  if (gradient != nullptr) {
    for (std::size_t c = 0; c < classes; ++c) {
      const auto pull = static_cast<float>(weight * (shares[c] / sum - (c == label ? 1 : 0)));
      add_scaled(pull, embedding, gradient->data() + c * dimension_, dimension_);
      (*gradient)[classes * dimension_ + c] += pull;
    }
  }
  return weight * (std::log(sum) - own);
}

void SoftmaxLoss::add_rows(const std::vector<float>& x, std::size_t begin, std::size_t end,
                           std::span<const std::size_t> rows, std::vector<float>* gradient, Sum& sum) const {
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t row = rows.empty() ? i : rows[i];
    const auto label = static_cast<std::size_t>(embeddings_->labels[row]);
    const double weight = class_weights_[label];
    const double part = embeddings_->has_mirrored() ? weight / 2 : weight;
    sum.loss += add_view(x, embeddings_->row(row), label, part, gradient);
    if (embeddings_->has_mirrored()) sum.loss += add_view(x, embeddings_->mirrored_row(row), label, part, gradient);
    sum.weight += weight;
  }
}

double SoftmaxLoss::evaluate(const std::vector<float>& x, std::vector<float>* gradient,
                             std::span<const std::size_t> rows) const {
  if (gradient != nullptr) std::fill(gradient->begin(), gradient->end(), 0.0f);
  const std::size_t count = rows.empty() ? embeddings_->size() : rows.size();
  // Each block but the first has a gradient of its own: a few of them, so that memory stays small.
  constexpr std::size_t kMostBlocks = 16, kFewestRows = 256;
  const std::size_t block = std::max(kFewestRows, (count + kMostBlocks - 1) / kMostBlocks);
  std::vector<Sum> sums(std::max<std::size_t>(1, (count + block - 1) / block));
  const auto add_blocks = [&](std::int64_t first, std::int64_t last) {
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      std::vector<float>* own = gradient;
      if (gradient != nullptr && k > 0) {
        sums[k].gradient.resize(gradient->size());
        own = &sums[k].gradient;
      }
      add_rows(x, k * block, std::min((k + 1) * block, count), rows, own, sums[k]);
    }
  };
  if (pool_ != nullptr && sums.size() > 1) {
    pool_->parallel_for(std::ssize(sums), 1, add_blocks);
  } else {
    add_blocks(0, std::ssize(sums));
  }
  double loss = 0, total = 0;
  for (const Sum& sum : sums) {
    loss += sum.loss;
    total += sum.weight;
    if (!sum.gradient.empty()) add_scaled(1, sum.gradient.data(), gradient->data(), gradient->size());
  }
  const double share = total > 0 ? 1 / total : 0;
  const std::size_t weights = static_cast<std::size_t>(classes_) * dimension_;
  const double squares = dot(x.data(), x.data(), weights);
  if (gradient != nullptr) {
    for (float& value : *gradient) value = static_cast<float>(value * share);
    add_scaled(static_cast<float>(l2_), x.data(), gradient->data(), weights);
  }
  return loss * share + l2_ / 2 * squares;
}

}  // namespace reef::learn
