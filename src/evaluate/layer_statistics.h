// SPDX-License-Identifier: Apache-2.0
// What is gathered about a tensor over many samples. Sums are taken in a fixed order of parts, so that they come out
// the same for any number of threads.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ir/model.h"

namespace reef::evaluate {

// How far values are from what they should be.
struct ErrorSums {
  double signal = 0, noise = 0, sum = 0, largest = 0;  // squares of the right values and of errors; errors themselves
  std::int64_t count = 0;

  void add(double value, double right) {
    const double error = value - right;
    signal += right * right;
    noise += error * error;
    sum += error;
    const double size = error < 0 ? -error : error;
    if (size > largest) largest = size;
    ++count;
  }
  void merge(const ErrorSums& other);

  double sqnr_db() const;  // infinite where nothing differs, NaN where nothing was seen
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  double rms() const;
  double relative_noise() const { return signal > 0 ? noise / signal : noise > 0 ? 1 : 0; }
};

// The real values that a quantized tensor can hold.
struct Representable {
  bool is_quantized = false;
  double scale = 0;
  std::int64_t zero_point = 0;
  double least_code = 0, most_code = 0;
  double low = 0, high = 0;

  static Representable of(ir::DataType type, const ir::Quantization& quantization);
  double code_of(double value) const;  // rounded and limited
  double value_of(double code) const { return (code - static_cast<double>(zero_point)) * scale; }
  double nearest(double value) const { return is_quantized ? value_of(code_of(value)) : value; }
};

// The float model's values of a tensor, seen against what its quantized version can represent.
class ValueStatistics {
 public:
  static constexpr int kBins = 1024;

  ValueStatistics() = default;
  explicit ValueStatistics(const Representable& range);

  void add(std::span<const float> values, std::int64_t channels);
  void merge(const ValueStatistics& other);

  std::int64_t count() const { return count_; }
  double min() const { return min_; }
  double max() const { return max_; }
  // Share of values more than half a step outside of the range.
  double clipped() const { return count_ > 0 ? static_cast<double>(clipped_) / static_cast<double>(count_) : 0; }
  // The value below which this share of all values lies, to the width of a bin.
  double quantile(double share) const;
  // Bars of equal width from low() to high(); values beyond are in the outermost.
  std::vector<std::int64_t> bars(int count) const;
  double low() const { return low_; }
  double high() const { return high_; }
  // Largest magnitude in each channel (last dimension); empty where there are too many.
  const std::vector<float>& channel_maxima() const { return channel_maxima_; }

 private:
  Representable range_;
  double low_ = 0, high_ = 0;  // half as much again on either side of the range
  std::vector<std::int64_t> bins_;
  std::int64_t count_ = 0, clipped_ = 0;
  double min_ = std::numeric_limits<double>::infinity(), max_ = -std::numeric_limits<double>::infinity();
  std::vector<float> channel_maxima_;
};

}  // namespace reef::evaluate
