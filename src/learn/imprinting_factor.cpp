// SPDX-License-Identifier: Apache-2.0
// How sharp the scores of an imprinted model are: the factor between cosines and softmax.
#include <algorithm>
#include <cmath>

#include "learn/imprinting_head.h"
#include "learn/vector_math.h"

namespace reef::learn {
namespace {

struct Row {
  std::vector<float> cosines;  // with each class's weights, its own made without this row
  std::size_t label = 0;
};

std::vector<Row> rows_left_out(const std::vector<ImprintedClass>& classes, const Embeddings& embeddings) {
  std::vector<std::vector<float>> weights;
  std::vector<double> lengths;
  for (const ImprintedClass& each : classes) {
    weights.push_back(each.weights());
    lengths.push_back(each.sum_length());
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    const auto label = static_cast<std::size_t>(embeddings.labels[i]);
    if (label >= classes.size() || !classes[label].is_trainable || classes[label].images < 2) continue;
    const std::vector<float> row = normalized(embeddings.row(i));
    Row made{{}, label};
    for (const std::vector<float>& each : weights) made.cosines.push_back(dot(each, row));
    made.cosines[label] =
        static_cast<float>(cosine_left_out(classes[label].sum, lengths[label], row, embeddings.direction(i)));
    rows.push_back(std::move(made));
  }
  return rows;
}

double mean_loss(const std::vector<Row>& rows, double factor) {
  double loss = 0;
  for (const Row& row : rows) {
    const float largest = *std::max_element(row.cosines.begin(), row.cosines.end());
    double sum = 0;
    for (const float cosine : row.cosines) sum += std::exp(factor * (cosine - largest));
    loss += std::log(sum) - factor * (row.cosines[row.label] - largest);
  }
  return loss / static_cast<double>(rows.size());
}

}  // namespace

double fitted_factor(const std::vector<ImprintedClass>& classes, const Embeddings& embeddings) {
  const std::vector<Row> rows = rows_left_out(classes, embeddings);
  if (rows.empty() || classes.size() < 2) return kUsualFactor;
  // The loss is convex in the factor: thirds of the interval, in logarithms.
  double low = 0, high = std::log(100.0);
  for (int i = 0; i < 40; ++i) {
    const double third = (high - low) / 3;
    if (mean_loss(rows, std::exp(low + third)) < mean_loss(rows, std::exp(high - third))) {
      high -= third;
    } else {
      low += third;
    }
  }
  return std::exp((low + high) / 2);
}

}  // namespace reef::learn
