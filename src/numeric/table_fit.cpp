// SPDX-License-Identifier: Apache-2.0
#include "numeric/table_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/at.h"

namespace reef::numeric {
namespace {

constexpr int kCodes = 256, kDegree = 4;
using Polynomial = std::array<float, kDegree + 1>;  // constant first

// Solves the normal equations of a least-squares fit; false if they are singular.
bool solve(std::array<std::array<double, kDegree + 2>, kDegree + 1>& rows, int unknowns) {
  for (int pivot = 0; pivot < unknowns; ++pivot) {
    int best = pivot;
    for (int row = pivot + 1; row < unknowns; ++row) {
      if (std::fabs(rows[row][pivot]) > std::fabs(rows[best][pivot])) best = row;
    }
    std::swap(rows[pivot], rows[best]);
    if (std::fabs(rows[pivot][pivot]) < 1e-12) return false;
    for (int row = 0; row < unknowns; ++row) {
      if (row == pivot) continue;
      const double factor = rows[row][pivot] / rows[pivot][pivot];
      for (int column = pivot; column <= unknowns; ++column) rows[row][column] -= factor * rows[pivot][column];
    }
  }
  for (int row = 0; row < unknowns; ++row) rows[row][unknowns] /= rows[row][row];
  return true;
}

class Fitter {
 public:
  Fitter(const CodeValues& values, float scale, int zero_point, int output_zero_point) {
    lowest_ = -output_zero_point;
    highest_ = 255 - output_zero_point;
    for (int code = 0; code < kCodes; ++code) {
      const auto at = static_cast<std::size_t>(code);
      arguments_[at] = static_cast<float>(code - zero_point) * scale;
      // Just beyond what saturates, so that polynomials need not follow a function to infinity.
      values_[at] = std::clamp(values[at], lowest_ - 1, highest_ + 1);
    }
  }

  // With as few pieces of at most `error` as it takes; nothing if these are more than a table has.
  bool fit(double error, TableFit& result) const {
    ChipTable& table = result.function.table;
    table.breaks.fill(std::numeric_limits<float>::infinity());
    int begin = 0;
    for (std::size_t piece = 0; begin < kCodes; ++piece) {
      if (piece == table.segments.size()) return false;
      if (piece > 0) table.breaks[piece - 1] = arguments_[reef::at(begin)];
      Polynomial polynomial{};
      begin = longest_piece(begin, error, polynomial);
      for (std::size_t rest = piece; rest < table.segments.size(); ++rest) table.segments[rest] = polynomial;
    }
    result.function.min = arguments_.front();
    result.function.max = arguments_.back();
    result.error = 0;
    for (int code = 0; code < kCodes; ++code) {
      const auto at = static_cast<std::size_t>(code);
      result.error = std::max(result.error, distance(result.function.at(arguments_[at]), at));
    }
    return true;
  }

 private:
  double distance(float value, std::size_t code) const {
    if (std::isnan(values_[code])) return 0;
    if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
    const double difference = std::fabs(value - values_[code]);
    const bool both_below = value <= lowest_ && values_[code] <= lowest_;
    const bool both_above = value >= highest_ && values_[code] >= highest_;
    return both_below || both_above ? 0 : difference;
  }

  static float at(const Polynomial& polynomial, float x) {
    float y = polynomial[kDegree];
    for (int power = kDegree - 1; power >= 0; --power) y = y * x + polynomial[reef::at(power)];
    return y;
  }

  double largest_distance(const Polynomial& polynomial, int begin, int end) const {
    double largest = 0;
    for (int code = begin; code < end; ++code) {
      const auto index = static_cast<std::size_t>(code);
      largest = std::max(largest, distance(at(polynomial, arguments_[index]), index));
    }
    return largest;
  }

  // By least squares in a variable that runs from -1 to 1; nothing where too few values count.
  bool polynomial_for(int begin, int end, int degree, Polynomial& result) const {
    const double first = arguments_[reef::at(begin)], last = arguments_[reef::at(end - 1)];
    const double centre = (first + last) / 2, half = end - begin > 1 ? (last - first) / 2 : 1;
    std::array<std::array<double, kDegree + 2>, kDegree + 1> rows{};
    for (int code = begin; code < end; ++code) {
      const auto index = static_cast<std::size_t>(code);
      if (std::isnan(values_[index])) continue;
      const double t = (arguments_[index] - centre) / half;
      std::array<double, 2 * kDegree + 1> powers;
      powers[0] = 1;
      for (std::size_t k = 1; k < powers.size(); ++k) powers[k] = powers[k - 1] * t;
      for (int row = 0; row <= degree; ++row) {
        for (int column = 0; column <= degree; ++column) rows[row][column] += powers[reef::at(row + column)];
        rows[row][degree + 1] += powers[reef::at(row)] * values_[index];
      }
    }
    if (!solve(rows, degree + 1)) return false;
    // From powers of (x - centre) / half to powers of x.
    std::array<double, kDegree + 1> expanded{};
    for (int power = degree; power >= 0; --power) {
      for (int k = kDegree; k >= 0; --k) {
        expanded[reef::at(k)] = -expanded[reef::at(k)] * centre / half + (k > 0 ? expanded[reef::at(k - 1)] / half : 0);
      }
      expanded[0] += rows[power][degree + 1];
    }
    for (std::size_t k = 0; k < expanded.size(); ++k) result[k] = static_cast<float>(expanded[k]);
    return true;
  }

  // The simplest polynomial within `error` of codes [begin, end): high powers cancel each other far from 0.
  bool suits(int begin, int end, double error, Polynomial& result) const {
    const int most = std::min(kDegree, end - begin - 1);
    for (int degree = 0; degree <= most; ++degree) {
      Polynomial polynomial{};
      if (!polynomial_for(begin, end, degree, polynomial)) continue;
      if (largest_distance(polynomial, begin, end) > error) continue;
      result = polynomial;
      return true;
    }
    Polynomial none{};  // all that counts is 0, or nothing does
    if (largest_distance(none, begin, end) > error) return false;
    result = none;
    return true;
  }

  int longest_piece(int begin, double error, Polynomial& result) const {
    int good = begin + 1, step = kCodes / 2;
    suits(begin, good, error, result);
    for (; step > 0; step /= 2) {
      while (good + step <= kCodes && suits(begin, good + step, error, result)) good += step;
    }
    return good;
  }

  std::array<float, kCodes> arguments_{};
  CodeValues values_{};
  double lowest_ = 0, highest_ = 255;
};

}  // namespace

TableFit fit_table(const CodeValues& values, float scale, int zero_point, int output_zero_point) {
  const Fitter fitter(values, scale, zero_point, output_zero_point);
  TableFit result;
  for (double error = 1.0 / 256; error < 512; error *= 2) {
    if (fitter.fit(error, result)) return result;
  }
  result.error = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace reef::numeric
