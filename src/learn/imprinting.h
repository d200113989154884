// SPDX-License-Identifier: Apache-2.0
// Weight imprinting: the last layer's weights for a class are the normalized mean of the class's normalized embeddings
// (Qi, Brown, Lowe: Low-Shot Learning with Imprinted Weights, 2018), with the rules of Coral's ImprintingEngine:
//
// - A class is the sum of its normalized embeddings; its weights are that sum divided by its length. Whoever knows
//   weights and length can go on adding: that is how training is resumed.
// - Classes that came with a model without their length (those it was trained with) are kept or dropped, never changed.
// - New classes take the next free number.
//
// Beyond Coral: a class that gets no new picture keeps the very bytes that its file holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "learn/embeddings.h"

namespace reef::learn {

// Coral's limit. Here it is advice: more pictures do no harm, but softmax regression makes more of them.
inline constexpr std::int64_t kAdvisedImages = 200;

// Weights as a file holds them.
struct StoredWeights {
  std::vector<std::uint8_t> bytes;
  float scale = 0;
};

struct ImprintedClass {
  std::string name;
  std::vector<double> sum;   // of normalized embeddings; of a class that cannot be trained: its weights
  bool is_trainable = true;  // false: it came with the model and the length of its sum is not known
  std::int64_t images = 0;   // that the sum is made of; 0: not known
  bool has_changed = true;   // since it was read from a file
  std::optional<StoredWeights> stored;

  std::vector<float> weights() const;  // of length 1
  double sum_length() const;
};

class Imprinting {
 public:
  explicit Imprinting(int dimension, std::vector<ImprintedClass> kept = {})
      : dimension_(dimension), classes_(std::move(kept)) {}

  int dimension() const { return dimension_; }
  const std::vector<ImprintedClass>& classes() const { return classes_; }
  std::vector<ImprintedClass>& classes() { return classes_; }

  // Adds one picture's embedding. `class_id` is a class that can be trained, or the number of classes: a new one.
  Status train(std::span<const float> embedding, int class_id);

 private:
  int dimension_;
  std::vector<ImprintedClass> classes_;
};

// The cosine of a row with its own class's sum, made without the picture: `length` that of
// the sum, `direction` what the picture added to it. (sum - direction) * row / |sum - direction|.
double cosine_left_out(const std::vector<double>& sum, double length, std::span<const float> row,
                       std::span<const float> direction);

// The class whose weights point most in the embedding's direction; of equals the first.
int nearest_class(const std::vector<std::vector<float>>& weights, std::span<const float> embedding);

}  // namespace reef::learn
