// SPDX-License-Identifier: Apache-2.0
// Which weights go is decided as SparseGPT does (Frantar and Alistarh, 2023): inputs are taken in order, in blocks; in
// a block the weights with the smallest w^2 / [H^-1]_ii go, and each one's error is moved to the inputs behind it.
// Then, where that is affordable, the weights that stay are solved for exactly, output by output.
#include "prune/sparse_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/at.h"

namespace reef::prune {
namespace {

constexpr double kRidge = 1e-2;           // of the mean square
constexpr std::size_t kBlockInputs = 64;  // inputs whose weights are judged together
constexpr double kMostWork = 4e10;        // products that solving exactly may take

// H^-1 = U^T U, row by row: row i of U says how an error of input i is moved to those behind it.
Matrix upper_factor_of_inverse(const Matrix& gram, std::size_t columns, double ridge) {
  Matrix h(columns, columns);
  for (std::size_t i = 0; i < columns; ++i) std::copy_n(gram.row(i), columns, h.row(i));
  add_to_diagonal(h, std::max(ridge * mean_diagonal(h), 1e-30));
  Matrix inverted = inverse(std::move(h));
  if (inverted.data.empty() || !factor(inverted)) return {};
  return inverted;
}

// Decides which weights stay; moves errors on the way, in `w`.
std::vector<bool> choose(const Matrix& u, double share, Matrix& w) {
  const std::size_t columns = u.rows, outputs = w.columns;
  std::vector<bool> stays(columns * outputs, true);
  for (std::size_t first = 0; first < columns; first += kBlockInputs) {
    const std::size_t last = std::min(first + kBlockInputs, columns);
    std::vector<std::size_t> order((last - first) * outputs);
    std::iota(order.begin(), order.end(), first * outputs);
    const auto harm = [&](std::size_t k) {
      const double value = w.data[k] / u(k / outputs, k / outputs);
      return value * value;
    };
    // Shares add up over blocks, so that rounding does not lose any.
    const auto upto = [&](std::size_t limit) { return std::llround(share * static_cast<double>(limit * outputs)); };
    const auto count = static_cast<std::ptrdiff_t>(upto(last) - upto(first));
    std::nth_element(order.begin(), order.begin() + count, order.end(), [&](std::size_t a, std::size_t b) {
      const double of_a = harm(a), of_b = harm(b);
      return of_a != of_b ? of_a < of_b : a < b;
    });
    for (std::ptrdiff_t i = 0; i < count; ++i) stays[order[at(i)]] = false;
    for (std::size_t i = first; i < last; ++i) {
      for (std::size_t o = 0; o < outputs; ++o) {
        if (stays[i * outputs + o]) continue;
        const double error = w(i, o) / u(i, i);
        for (std::size_t k = i; k < columns; ++k) w(k, o) -= error * u(i, k);
        w(i, o) = 0;
      }
    }
  }
  return stays;
}

// The best weights for output `o` if only those that stay may differ from 0.
void solve_output(const NormalEquations& equations, const std::vector<std::size_t>& active, double ridge, std::size_t o,
                  Matrix& w) {
  const std::size_t columns = equations.gram.rows - 1;
  Matrix gram = submatrix(equations.gram, active), wanted(active.size(), 1);
  double mean = 0;
  for (std::size_t i = 0; i < columns; ++i) mean += equations.gram(i, i) / static_cast<double>(columns);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const bool is_bias = active[i] == columns;
    const double pull = is_bias ? 1e-9 * mean : ridge * mean;
    gram(i, i) += pull;
    wanted(i, 0) = equations.cross(active[i], o) + pull * w(active[i], o);
  }
  if (!factor(gram)) return;
  solve(gram, wanted);
  if (!std::all_of(wanted.data.begin(), wanted.data.end(), [](double v) { return std::isfinite(v); })) return;
  for (std::size_t i = 0; i < active.size(); ++i) w(active[i], o) = wanted(i, 0);
}

}  // namespace

Matrix sparse_solution(const NormalEquations& equations, const Matrix& dense, double share, bool has_bias) {
  const std::size_t columns = dense.rows - 1, outputs = dense.columns;
  Matrix w = dense;
  Matrix weights(columns, outputs);
  std::copy_n(dense.data.begin(), columns * outputs, weights.data.begin());
  const Matrix u = upper_factor_of_inverse(equations.gram, columns, kRidge);
  std::vector<bool> stays;
  if (!u.data.empty()) {
    stays = choose(u, share, weights);
  } else {  // inputs that are always zero: any weight does
    Matrix plain(columns, columns);
    add_to_diagonal(plain, 1);
    stays = choose(plain, share, weights);
  }
  std::copy_n(weights.data.begin(), columns * outputs, w.data.begin());
  const double active_size = (1 - share) * static_cast<double>(columns) + 1;
  if (active_size * active_size * active_size / 3 * static_cast<double>(outputs) > kMostWork) return w;
  for (std::size_t o = 0; o < outputs; ++o) {
    std::vector<std::size_t> active;
    for (std::size_t c = 0; c < columns; ++c) {
      if (stays[c * outputs + o]) active.push_back(c);
    }
    if (has_bias) active.push_back(columns);
    if (!active.empty()) solve_output(equations, active, kRidge / 10, o, w);
  }
  return w;
}

}  // namespace reef::prune
