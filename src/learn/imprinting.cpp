// SPDX-License-Identifier: Apache-2.0
#include "learn/imprinting.h"

#include <algorithm>
#include <cmath>

#include "learn/vector_math.h"

namespace reef::learn {

double ImprintedClass::sum_length() const { return length(sum); }

std::vector<float> ImprintedClass::weights() const {
  const double size = sum_length();
  std::vector<float> result;
  result.reserve(sum.size());
  for (const double value : sum) result.push_back(static_cast<float>(size > 0 ? value / size : 0));
  return result;
}

Status Imprinting::train(std::span<const float> embedding, int class_id) {
  const int count = static_cast<int>(classes_.size());
  REEF_REQUIRE(static_cast<int>(embedding.size()) == dimension_, "an embedding has {} numbers, the model's have {}",
               embedding.size(), dimension_);
  REEF_REQUIRE(class_id >= 0 && class_id <= count,
               "class {} cannot be trained: the model has {} classes, so the next new one is {}", class_id, count,
               count);
  REEF_REQUIRE(class_id == count || classes_[at(class_id)].is_trainable,
               "class {} was not learned by imprinting: it can be kept but not changed", class_id);
  double squares = 0;
  for (const float value : embedding) squares += static_cast<double>(value) * value;
  REEF_REQUIRE(std::isfinite(squares) && squares > 0, "an embedding of class {} is {}, it has no direction", class_id,
               squares == 0 ? "zero everywhere" : "not finite");
  if (class_id == count) {
    ImprintedClass added;
    added.sum.resize(static_cast<std::size_t>(dimension_));
    classes_.push_back(std::move(added));
  }
  ImprintedClass& trained = classes_[at(class_id)];
  const double scale = 1 / std::sqrt(squares);
  for (std::size_t i = 0; i < embedding.size(); ++i) trained.sum[i] += embedding[i] * scale;
  ++trained.images;
  trained.has_changed = true;
  return ok_status();
}

double cosine_left_out(const std::vector<double>& sum, double length, std::span<const float> row,
                       std::span<const float> direction) {
  double along = 0, shared = 0, own = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    along += sum[i] * row[i];
    shared += sum[i] * direction[i];
    own += static_cast<double>(direction[i]) * row[i];
  }
  return (along - own) / std::sqrt(std::max(1e-12, length * length - 2 * shared + 1));
}

int nearest_class(const std::vector<std::vector<float>>& weights, std::span<const float> embedding) {
  int best = -1;
  float most = 0;
  for (std::size_t c = 0; c < weights.size(); ++c) {
    const float product = dot(weights[c], embedding);
    if (best >= 0 && product <= most) continue;
    best = static_cast<int>(c);
    most = product;
  }
  return best;
}

}  // namespace reef::learn
