// SPDX-License-Identifier: Apache-2.0
// What calibration remembers of a tensor's values, in memory that does not grow with the number of samples.
//
// The histogram covers [-2^e, 2^e) in bins of equal width. A larger value doubles the range and joins bins in pairs;
// since limits are powers of two and magnitudes are cut towards zero, the result does not depend on the order of
// samples or on how they were dealt to threads, to the last count. Exact zeros, of which ReLU makes many, are counted
// apart: quantization has no error there. Of a large tensor, every k-th value of a sample is counted (minimum and
// maximum see all of them).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace reef::quantize {

class Histogram {
 public:
  static constexpr int kBins = 4096;
  static constexpr std::int64_t kMaxValuesPerCall = 4096;  // of one tensor in one sample, about

  // `largest`: no value's magnitude is larger. Values must be finite.
  void add(std::span<const float> values, float largest);
  void merge(const Histogram& other);
  // As it was in another process. False: there is no such histogram.
  bool restore(std::uint64_t zeros, int exponent, std::vector<std::uint64_t> counts);

  bool empty() const { return counts_.empty() && zeros_ == 0; }
  std::uint64_t zeros() const { return zeros_; }
  std::uint64_t total() const;  // with zeros
  int exponent() const { return exponent_; }
  double limit() const;                                              // 2^e
  double width() const;                                              // of a bin
  std::span<const std::uint64_t> counts() const { return counts_; }  // kBins of them, or none
  double lower_edge(int bin) const { return (bin - kBins / 2) * width(); }

 private:
  void grow_to(int exponent);
  int exponent_ = 0;
  std::uint64_t zeros_ = 0;
  std::vector<std::uint64_t> counts_;  // bin kBins/2 starts at 0
};

// Extremes and sums of each index of a tensor's last dimension.
struct ChannelStatistics {
  std::vector<float> min, max;
  std::vector<double> sum;
  std::uint64_t count = 0;  // values of each channel
  double mean(std::size_t channel) const { return count == 0 ? 0 : sum[channel] / static_cast<double>(count); }
};

// One tensor in one sample; merged into TensorStatistics in the order of samples.
struct SampleStatistics {
  bool seen = false;
  float min = std::numeric_limits<float>::infinity();  // over finite values
  float max = -std::numeric_limits<float>::infinity();
  std::uint64_t values = 0, not_finite = 0, infinite = 0;  // not_finite: with infinities
  std::uint64_t masked = 0;    // left out of everything but these counts (masks.h); with what is not finite
  ChannelStatistics channels;  // of this sample; empty unless asked for

  // `channels` > 0: also extremes and sums of so many channels, the innermost dimension.
  void observe(std::span<const float> values, std::int64_t channels);
  void clear();
};

struct TensorStatistics {
  std::uint64_t samples = 0, values = 0, not_finite = 0, infinite = 0;
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  double average_min = 0, average_max = 0;  // moving averages over samples
  ChannelStatistics channels;
  Histogram histogram;

  bool seen() const { return samples > 0 && min <= max; }
  void merge_sample(const SampleStatistics& sample);
};

}  // namespace reef::quantize
