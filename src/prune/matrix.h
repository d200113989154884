// SPDX-License-Identifier: Apache-2.0
// Dense matrices of doubles and what least squares needs of them. Sums are added in a fixed order, so that results do
// not depend on the number of threads or on the CPU.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace reef::prune {

// Row-major.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), data(r * c, 0.0) {}
  double* row(std::size_t i) { return data.data() + i * columns; }
  const double* row(std::size_t i) const { return data.data() + i * columns; }
  double& operator()(std::size_t i, std::size_t k) { return data[i * columns + k]; }
  double operator()(std::size_t i, std::size_t k) const { return data[i * columns + k]; }
};

// Rows and columns `kept` of a square matrix; rows `kept` of any.
Matrix submatrix(const Matrix& square, std::span<const std::size_t> kept);
Matrix rows_of(const Matrix& matrix, std::span<const std::size_t> kept);

// Adds x^T x for each of `count` rows x of `width` numbers to rows [begin, end) of the upper triangle of `gram` (width
// by width).
void add_products(const float* rows, std::size_t count, std::size_t width, std::size_t begin, std::size_t end,
                  Matrix& gram);
// Adds x^T y for each of `count` pairs of rows to rows [begin, end) of `cross` (x_width by y_width).
void add_cross_products(const float* x, std::size_t x_width, const float* y, std::size_t y_width, std::size_t count,
                        std::size_t begin, std::size_t end, Matrix& cross);
// Copies the upper triangle of a square matrix to the lower one.
void mirror_upper(Matrix& matrix);

// The factor U of a symmetric matrix A = U^T U, of which the upper triangle is read. False: A is not positive definite.
bool factor(Matrix& a);
// Solves A X = B for the factor that factor() left in `u`; B becomes X.
void solve(const Matrix& u, Matrix& b);
// The inverse of a symmetric positive definite matrix; empty if it is not one.
Matrix inverse(Matrix a);

double mean_diagonal(const Matrix& square);
void add_to_diagonal(Matrix& square, double value);

}  // namespace reef::prune
