// SPDX-License-Identifier: Apache-2.0
// Every inner loop adds a multiple of one contiguous row to another: compilers vectorize that without reordering sums.
// The factorization works on panels of rows, so that large matrices pass through the cache once per panel.
#include "prune/matrix.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/loops.h"

namespace reef::prune {
namespace {

constexpr std::size_t kPanel = 32;  // rows of the factor that are applied together

// to[i] -= a * x[i]
void subtract_scaled(double a, const double* x, double* to, std::size_t count) {
  kernels::in_vectors([=] {
    REEF_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) to[i] -= a * x[i];
  });
}

// Applies rows [first, last) of the factor to row `i` of what is left.
void apply_panel(Matrix& a, std::size_t first, std::size_t last, std::size_t i) {
  const std::size_t n = a.columns;
  double* to = a.row(i);
  std::size_t k = first;
  for (; k + 4 <= last; k += 4) {
    const double *x0 = a.row(k), *x1 = a.row(k + 1), *x2 = a.row(k + 2), *x3 = a.row(k + 3);
    const double a0 = x0[i], a1 = x1[i], a2 = x2[i], a3 = x3[i];
    kernels::in_vectors([=] {
      REEF_INDEPENDENT
      for (std::size_t j = i; j < n; ++j) to[j] -= a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j];
    });
  }
  for (; k < last; ++k) subtract_scaled(a(k, i), a.row(k) + i, to + i, n - i);
}

}  // namespace

Matrix submatrix(const Matrix& square, std::span<const std::size_t> kept) {
  Matrix result(kept.size(), kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t k = 0; k < kept.size(); ++k) result(i, k) = square(kept[i], kept[k]);
  }
  return result;
}

Matrix rows_of(const Matrix& matrix, std::span<const std::size_t> kept) {
  Matrix result(kept.size(), matrix.columns);
  for (std::size_t i = 0; i < kept.size(); ++i) std::copy_n(matrix.row(kept[i]), matrix.columns, result.row(i));
  return result;
}

void add_products(const float* rows, std::size_t count, std::size_t width, std::size_t begin, std::size_t end,
                  Matrix& gram) {
  std::size_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const float *x0 = rows + r * width, *x1 = x0 + width, *x2 = x1 + width, *x3 = x2 + width;
    kernels::in_vectors([&, x0, x1, x2, x3] {
      for (std::size_t i = begin; i < end; ++i) {
        const double a0 = x0[i], a1 = x1[i], a2 = x2[i], a3 = x3[i];
        if (a0 == 0 && a1 == 0 && a2 == 0 && a3 == 0) continue;  // frequent behind a RELU
        double* to = gram.row(i);
        REEF_INDEPENDENT
        for (std::size_t j = i; j < width; ++j) to[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j];
      }
    });
  }
  for (; r < count; ++r) {
    const float* x = rows + r * width;
    for (std::size_t i = begin; i < end; ++i) {
      const double a = x[i];
      double* to = gram.row(i);
      for (std::size_t j = i; j < width; ++j) to[j] += a * x[j];
    }
  }
}

void add_cross_products(const float* x, std::size_t x_width, const float* y, std::size_t y_width, std::size_t count,
                        std::size_t begin, std::size_t end, Matrix& cross) {
  for (std::size_t r = 0; r < count; ++r) {
    const float *xr = x + r * x_width, *yr = y + r * y_width;
    kernels::in_vectors([&, xr, yr] {
      for (std::size_t i = begin; i < end; ++i) {
        const double a = xr[i];
        if (a == 0) continue;
        double* to = cross.row(i);
        REEF_INDEPENDENT
        for (std::size_t j = 0; j < y_width; ++j) to[j] += a * yr[j];
      }
    });
  }
}

void mirror_upper(Matrix& matrix) {
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    for (std::size_t k = 0; k < i; ++k) matrix(i, k) = matrix(k, i);
  }
}

bool factor(Matrix& a) {
  const std::size_t n = a.rows;
  for (std::size_t first = 0; first < n; first += kPanel) {
    const std::size_t last = std::min(first + kPanel, n);
    for (std::size_t k = first; k < last; ++k) {
      for (std::size_t m = first; m < k; ++m) subtract_scaled(a(m, k), a.row(m) + k, a.row(k) + k, n - k);
      const double pivot = a(k, k);
      if (!(pivot > 0) || !std::isfinite(pivot)) return false;
      const double scale = 1 / std::sqrt(pivot);
      for (std::size_t j = k; j < n; ++j) a(k, j) *= scale;
    }
    for (std::size_t i = last; i < n; ++i) apply_panel(a, first, last, i);
  }
  return true;
}

void solve(const Matrix& u, Matrix& b) {
  const std::size_t n = u.rows, m = b.columns;
  for (std::size_t k = 0; k < n; ++k) {
    double* x = b.row(k);
    const double scale = 1 / u(k, k);
    for (std::size_t j = 0; j < m; ++j) x[j] *= scale;
    for (std::size_t i = k + 1; i < n; ++i) subtract_scaled(u(k, i), x, b.row(i), m);
  }
  for (std::size_t k = n; k-- > 0;) {
    double* x = b.row(k);
    for (std::size_t j = k + 1; j < n; ++j) subtract_scaled(u(k, j), b.row(j), x, m);
    const double scale = 1 / u(k, k);
    for (std::size_t j = 0; j < m; ++j) x[j] *= scale;
  }
}

Matrix inverse(Matrix a) {
  const std::size_t n = a.rows;
  if (!factor(a)) return {};
  Matrix result(n, n);
  for (std::size_t i = 0; i < n; ++i) result(i, i) = 1;
  solve(a, result);
  return result;
}

double mean_diagonal(const Matrix& square) {
  double sum = 0;
  for (std::size_t i = 0; i < square.rows; ++i) sum += square(i, i);
  return square.rows == 0 ? 0 : sum / static_cast<double>(square.rows);
}

void add_to_diagonal(Matrix& square, double value) {
  for (std::size_t i = 0; i < square.rows; ++i) square(i, i) += value;
}

}  // namespace reef::prune
