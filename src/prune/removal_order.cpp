// SPDX-License-Identifier: Apache-2.0
#include "prune/removal_order.h"

#include <algorithm>
#include <limits>

#include "kernels/simd/loops.h"

namespace reef::prune {
namespace {

constexpr double kRidge = 1e-3;             // of the mean square: inputs that are nearly equal do not blow up weights
constexpr std::size_t kMostColumns = 1280;  // with more, each unit counts as one input with the sum of its products

// Each unit as one input whose value is what it adds to the results, and whose weight is 1.
Reader merged(const Reader& reader) {
  const std::size_t units = reader.columns.size(), outputs = reader.weights.columns;
  Reader result{Matrix(units, units), Matrix(units, 1), {}};
  for (std::size_t u = 0; u < units; ++u) {
    result.columns.push_back({u});
    result.weights(u, 0) = 1;
    // The weights of u's inputs, multiplied with the gram matrix: what each input of the layer shares with u.
    Matrix shared(reader.gram.rows, outputs);
    for (const std::size_t i : reader.columns[u]) {
      for (std::size_t k = 0; k < reader.gram.rows; ++k) {
        const double a = reader.gram(i, k);
        if (a == 0) continue;
        double* to = shared.row(k);
        const double* w = reader.weights.row(i);
        kernels::in_vectors([=] {
          REEF_INDEPENDENT
          for (std::size_t o = 0; o < outputs; ++o) to[o] += a * w[o];
        });
      }
    }
    for (std::size_t v = 0; v < units; ++v) {
      double sum = 0;
      for (const std::size_t k : reader.columns[v]) {
        for (std::size_t o = 0; o < outputs; ++o) sum += shared(k, o) * reader.weights(k, o);
      }
      result.gram(u, v) = sum;
    }
  }
  return result;
}

// The inverse of a reader's gram matrix and the weights fitted to what is left of its inputs.
class Elimination {
 public:
  explicit Elimination(Reader reader) : columns_(std::move(reader.columns)), weights_(std::move(reader.weights)) {
    for (std::size_t i = 0; i < weights_.rows; ++i) {
      for (std::size_t k = 0; k < weights_.rows; ++k) {
        double sum = 0;
        for (std::size_t o = 0; o < weights_.columns; ++o) sum += weights_(i, o) * weights_(k, o);
        power_ += reader.gram(i, k) * sum;
      }
    }
    add_to_diagonal(reader.gram, std::max(kRidge * mean_diagonal(reader.gram), std::numeric_limits<double>::min()));
    inverse_ = inverse(std::move(reader.gram));
  }
  bool is_usable() const { return !inverse_.data.empty() && power_ > 0; }

  // The results' loss, relative to their power, when unit `u` goes, too.
  double error(std::size_t u) const {
    const std::vector<std::size_t>& set = columns_[u];
    if (set.empty()) return 0;
    Matrix w = rows_of(weights_, set);
    const Matrix before = w;
    Matrix of_set = submatrix(inverse_, set);
    if (!factor(of_set)) return 0;
    solve(of_set, w);
    double sum = 0;
    for (std::size_t i = 0; i < w.data.size(); ++i) sum += w.data[i] * before.data[i];
    return std::max(sum, 0.0) / power_;
  }

  void remove(std::size_t u) {
    const std::vector<std::size_t>& set = columns_[u];
    if (set.empty()) return;
    Matrix of_set = submatrix(inverse_, set);
    if (!factor(of_set)) return;
    const Matrix across = rows_of(inverse_, set);
    Matrix solved = across, w = rows_of(weights_, set);
    solve(of_set, solved);
    solve(of_set, w);
    for (std::size_t i = 0; i < inverse_.rows; ++i) {
      for (std::size_t s = 0; s < set.size(); ++s) {
        const double a = across(s, i);
        if (a == 0) continue;
        subtract(a, solved.row(s), inverse_.row(i), inverse_.columns);
        subtract(a, w.row(s), weights_.row(i), weights_.columns);
      }
    }
    // Nothing of the removed inputs is left, up to rounding; exactly nothing keeps later steps sound.
    for (const std::size_t i : set) {
      for (std::size_t k = 0; k < inverse_.rows; ++k) inverse_(i, k) = inverse_(k, i) = 0;
      for (std::size_t o = 0; o < weights_.columns; ++o) weights_(i, o) = 0;
    }
  }

 private:
  static void subtract(double a, const double* x, double* to, std::size_t count) {
    kernels::in_vectors([=] {
      REEF_INDEPENDENT
      for (std::size_t i = 0; i < count; ++i) to[i] -= a * x[i];
    });
  }

  std::vector<std::vector<std::size_t>> columns_;
  Matrix weights_, inverse_;
  double power_ = 0;
};

}  // namespace

std::vector<std::size_t> removal_order(std::vector<Reader> readers, std::size_t units) {
  std::vector<Elimination> eliminations;
  for (Reader& reader : readers) {
    const bool is_large = reader.gram.rows > kMostColumns;
    eliminations.emplace_back(is_large ? merged(reader) : std::move(reader));
    reader = {};
    if (!eliminations.back().is_usable()) eliminations.pop_back();
  }
  std::vector<std::size_t> left(units), order;
  for (std::size_t u = 0; u < units; ++u) left[u] = u;
  while (left.size() > 1) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < left.size(); ++i) {
      double error = 0;
      for (const Elimination& each : eliminations) error += each.error(left[i]);
      if (error < least) least = error, best = i;
    }
    for (Elimination& each : eliminations) each.remove(left[best]);
    order.push_back(left[best]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  order.insert(order.end(), left.begin(), left.end());
  return order;
}

}  // namespace reef::prune
