// SPDX-License-Identifier: Apache-2.0
#include "prune/normal_equations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/at.h"
#include "ir/constants.h"

namespace reef::prune {
namespace {

constexpr double kMostMatrixWork = 3e10;    // products for one matrix
constexpr std::size_t kRowsPerColumn = 24;  // more of them do not make the estimate better
constexpr std::size_t kLeastRows = 4096;
constexpr std::size_t kBlock = 256;      // rows that are added together
constexpr std::size_t kRowsOfGram = 32;  // that one thread adds to at a time
constexpr double kLeastRidge = 1e-9;     // of the mean square: keeps the matrix positive definite
constexpr double kRidges[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};

std::size_t rows_wanted(std::size_t width) {
  const auto affordable =
      static_cast<std::size_t>(kMostMatrixWork / (static_cast<double>(width) * static_cast<double>(width)));
  return std::max<std::size_t>(std::min(std::max(kRowsPerColumn * width, kLeastRows), affordable), 64);
}

void add_block(const std::vector<float>& x, std::size_t x_width, const std::vector<float>& y, std::size_t y_width,
               std::size_t count, NormalEquations& to, ThreadPool& pool) {
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    const auto first = static_cast<std::size_t>(begin), last = static_cast<std::size_t>(end);
    add_products(x.data(), count, x_width, first, last, to.gram);
    if (y_width > 0) add_cross_products(x.data(), x_width, y.data(), y_width, count, first, last, to.cross);
  };
  if (x_width < 2 * kRowsOfGram) {
    add(0, static_cast<std::int64_t>(x_width));
  } else {
    pool.parallel_for(static_cast<std::int64_t>(x_width), kRowsOfGram, add);
  }
}

}  // namespace

void NormalEquations::add(const NormalEquations& other) {
  for (std::size_t i = 0; i < gram.data.size(); ++i) gram.data[i] += other.gram.data[i];
  for (std::size_t i = 0; i < cross.data.size(); ++i) cross.data[i] += other.cross.data[i];
  power += other.power;
  rows += other.rows;
}

NormalEquations gather(const LinearLayer& layer, std::size_t group, std::span<const std::size_t> samples,
                       const SampleValues& x, const SampleValues& y, ThreadPool& pool) {
  const std::size_t width = layer.columns() + 1, outputs = y ? layer.outputs : 0;
  const std::size_t available = samples.size() * layer.pixels, wanted = rows_wanted(width);
  const std::size_t step = std::max<std::size_t>(1, available / wanted);
  NormalEquations result{Matrix(width, width), Matrix(width, outputs), 0, 0};
  std::vector<float> block_x(kBlock * width), block_y(kBlock * std::max<std::size_t>(outputs, 1));
  std::size_t filled = 0;
  const auto flush = [&] {
    add_block(block_x, width, block_y, outputs, filled, result, pool);
    result.rows += static_cast<double>(filled);
    filled = 0;
  };
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const std::span<const float> inputs = x(samples[s]);
    const std::span<const float> wanted_results = y ? y(samples[s]) : std::span<const float>();
    for (std::size_t pixel = s * 17 % step; pixel < layer.pixels; pixel += step) {
      float* row = block_x.data() + filled * width;
      layer.fill_row(inputs, pixel, group, row);
      row[width - 1] = 1;
      for (std::size_t o = 0; o < outputs; ++o) {
        const float value = wanted_results[layer.result_at(pixel, group, o)];
        block_y[filled * outputs + o] = value;
        result.power += static_cast<double>(value) * value;
      }
      if (++filled == kBlock) flush();
    }
  }
  flush();
  mirror_upper(result.gram);
  return result;
}

Matrix weights_of(const ir::Model& model, const LinearLayer& layer, std::size_t group) {
  const auto tensor = [&](std::int32_t t) -> const ir::Tensor& { return model.subgraphs[0].tensors[at(t)]; };
  const std::vector<float> weights = ir::float_values(model, tensor(layer.weights));
  Matrix result(layer.columns() + 1, layer.outputs);
  for (std::size_t o = 0; o < layer.outputs; ++o) {
    for (std::size_t c = 0; c < layer.columns(); ++c) result(c, o) = weights[layer.weight_at(group, o, c)];
  }
  if (layer.bias >= 0) {
    const std::vector<float> bias = ir::float_values(model, tensor(layer.bias));
    for (std::size_t o = 0; o < layer.outputs; ++o) result(layer.columns(), o) = bias[group * layer.outputs + o];
  }
  return result;
}

void set_weights(ir::Model& model, const LinearLayer& layer, const std::vector<Matrix>& by_group) {
  ir::Tensor& weights = model.subgraphs[0].tensors[at(layer.weights)];
  std::vector<float> values(layer.groups * layer.outputs * layer.columns());
  std::vector<float> bias(layer.groups * layer.outputs);
  for (std::size_t g = 0; g < layer.groups; ++g) {
    for (std::size_t o = 0; o < layer.outputs; ++o) {
      for (std::size_t c = 0; c < layer.columns(); ++c) {
        values[layer.weight_at(g, o, c)] = static_cast<float>(by_group[g](c, o));
      }
      bias[g * layer.outputs + o] = static_cast<float>(by_group[g](layer.columns(), o));
    }
  }
  ir::set_constant(model, weights, values);
  if (layer.bias >= 0) ir::set_constant(model, model.subgraphs[0].tensors[at(layer.bias)], bias);
}

Matrix ridge_solution(const NormalEquations& equations, const Matrix& from, double ridge, bool has_bias) {
  const std::size_t n = has_bias ? equations.gram.rows : equations.gram.rows - 1;
  const std::size_t columns = equations.gram.rows - 1;
  Matrix gram(n, n), wanted(n, from.columns);
  for (std::size_t i = 0; i < n; ++i) {
    std::copy_n(equations.gram.row(i), n, gram.row(i));
    std::copy_n(equations.cross.row(i), from.columns, wanted.row(i));
    for (std::size_t k = 0; k < equations.gram.columns; ++k) {
      const double a = equations.gram(i, k);
      if (a == 0) continue;
      for (std::size_t o = 0; o < from.columns; ++o) wanted(i, o) -= a * from(k, o);
    }
  }
  double mean = 0;
  for (std::size_t i = 0; i < columns; ++i) mean += gram(i, i) / static_cast<double>(std::max<std::size_t>(columns, 1));
  if (!(mean > 0) || !std::isfinite(mean)) return {};
  for (std::size_t i = 0; i < n; ++i) gram(i, i) += (i < columns ? std::max(ridge, kLeastRidge) : kLeastRidge) * mean;
  if (!factor(gram)) return {};
  solve(gram, wanted);
  Matrix result = from;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t o = 0; o < from.columns; ++o) result(i, o) += wanted(i, o);
  }
  const bool is_finite = std::all_of(result.data.begin(), result.data.end(), [](double v) { return std::isfinite(v); });
  return is_finite ? result : Matrix();
}

double squared_error(const NormalEquations& equations, const Matrix& w) {
  double sum = equations.power;
  std::vector<double> product(w.columns);
  for (std::size_t i = 0; i < w.rows; ++i) {
    std::fill(product.begin(), product.end(), 0.0);
    for (std::size_t k = 0; k < w.rows; ++k) {
      const double a = equations.gram(i, k);
      if (a == 0) continue;
      for (std::size_t o = 0; o < w.columns; ++o) product[o] += a * w(k, o);
    }
    for (std::size_t o = 0; o < w.columns; ++o) sum += w(i, o) * (product[o] - 2 * equations.cross(i, o));
  }
  return sum;
}

double best_ridge(const NormalEquations& solved_with, const NormalEquations& others, const Matrix& from,
                  bool has_bias) {
  double best = kRidges[std::size(kRidges) - 1], least = std::numeric_limits<double>::infinity();
  for (const double ridge : kRidges) {
    const Matrix w = ridge_solution(solved_with, from, ridge, has_bias);
    if (w.data.empty()) continue;
    const double error = squared_error(others, w);
    if (error < least) least = error, best = ridge;
  }
  return best;
}

}  // namespace reef::prune
