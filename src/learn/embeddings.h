// SPDX-License-Identifier: Apache-2.0
// The input of learning: the base network's answers, one row per picture, each with the number of its class.
//
// Nothing in src/learn knows where rows came from (pictures, sounds, a file) or which device computed them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace reef::learn {

struct Embeddings {
  int dimension = 0;
  std::vector<float> values;         // row after row
  std::vector<std::int32_t> labels;  // class of each row, from 0
  std::vector<float> mirrored;       // of the same pictures seen in a mirror, row after row; empty: not known

  std::size_t size() const { return labels.size(); }
  bool has_mirrored() const { return !mirrored.empty(); }
  bool empty() const { return labels.empty(); }
  std::span<const float> row(std::size_t i) const {
    return std::span(values).subspan(i * static_cast<std::size_t>(dimension), static_cast<std::size_t>(dimension));
  }
  std::span<const float> mirrored_row(std::size_t i) const {
    return std::span(mirrored).subspan(i * static_cast<std::size_t>(dimension), static_cast<std::size_t>(dimension));
  }
  // Where a picture points: its row, or the sum of its two views' directions, of length 1. Zeros stay zeros.
  std::vector<float> direction(std::size_t i) const;
  void add(std::span<const float> row, std::int32_t label) {
    values.insert(values.end(), row.begin(), row.end());
    labels.push_back(label);
  }
};

// Every row is there, finite, and its class in [0, classes). The error names the row.
Status check_embeddings(const Embeddings& embeddings, int classes);

// Rows by number, in that order.
Embeddings chosen(const Embeddings& embeddings, std::span<const std::size_t> rows);

// How many rows each class has.
std::vector<std::int64_t> images_per_class(const Embeddings& embeddings, int classes);

// Rows to learn from and rows held back, each class by itself: `share` of its rows, rounded, but never its last; which
// ones is drawn from `seed`. Both ascending.
struct Division {
  std::vector<std::size_t> train, held_back;
};
Division divide(std::span<const std::int32_t> labels, int classes, double share, std::uint32_t seed);
// So many divisions that each row is held back in exactly one, every class spread evenly over them.
std::vector<Division> folds(std::span<const std::int32_t> labels, int classes, int count, std::uint32_t seed);

}  // namespace reef::learn
