// SPDX-License-Identifier: Apache-2.0
// Least squares for one group of a linear layer: which weights and bias give results nearest to the wanted ones, on
// rows of many samples, without going far from the weights that are there.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "ir/model.h"
#include "prune/linear_layer.h"
#include "prune/matrix.h"

namespace reef::prune {

// Layers with longer rows are neither judged nor repaired: the matrix would take over 300 MB.
inline constexpr std::size_t kMostColumns = 6144;

// Sums over rows x, to which a constant 1 is added for the bias, and over the wanted results y.
struct NormalEquations {
  Matrix gram;       // of x
  Matrix cross;      // of x and y; no columns: y was not given
  double power = 0;  // sum of squares of y
  double rows = 0;

  void add(const NormalEquations& other);
};

// A sample's values of a tensor.
using SampleValues = std::function<std::span<const float>(std::size_t sample)>;

// `y` (may be empty) has the layer's results, as wanted. Of very many rows some are taken, evenly.
NormalEquations gather(const LinearLayer& layer, std::size_t group, std::span<const std::size_t> samples,
                       const SampleValues& x, const SampleValues& y, ThreadPool& pool);

// Weights and bias of a group as a matrix: a row for each column of x, the last one for the bias; a column for each
// output.
Matrix weights_of(const ir::Model& model, const LinearLayer& layer, std::size_t group);
// The bias is written only where the layer has one.
void set_weights(ir::Model& model, const LinearLayer& layer, const std::vector<Matrix>& by_group);

// The weights w that minimize the sum of (x w - y)^2 + ridge * (w - from)^2; the bias is free if `has_bias`, else it
// stays 0. `ridge` is relative to the mean square of the columns. Empty: the numbers allow no solution.
Matrix ridge_solution(const NormalEquations& equations, const Matrix& from, double ridge, bool has_bias);
// The sum of (x w - y)^2.
double squared_error(const NormalEquations& equations, const Matrix& w);

// The ridge that is best on rows of samples that were not solved with.
double best_ridge(const NormalEquations& solved_with, const NormalEquations& others, const Matrix& from, bool has_bias);

}  // namespace reef::prune
