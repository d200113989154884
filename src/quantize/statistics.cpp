// SPDX-License-Identifier: Apache-2.0
#include "quantize/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quantize/masks.h"

namespace reef::quantize {
namespace {

constexpr int kLanes = 16;               // independent minima and maxima, so that loops vectorize
constexpr double kMovingAverage = 0.99;  // weight of the past, as in TensorFlow's fake quantization
constexpr int kSmallestExponent = -100;

// Smallest e with magnitude < 2^e.
int exponent_above(float magnitude) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return std::max(exponent, kSmallestExponent);
}

struct Extremes {
  float min, max;
  bool all_finite;
};

Extremes extremes(std::span<const float> values) {
  std::array<float, kLanes> low, high, probe;
  low.fill(std::numeric_limits<float>::infinity());
  high.fill(-std::numeric_limits<float>::infinity());
  probe.fill(0);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      const float v = values[i + j];
      low[j] = v < low[j] ? v : low[j];
      high[j] = v > high[j] ? v : high[j];
      probe[j] += v * 0.0f;  // stays 0 unless a value is infinite or not a number
    }
  }
  for (; i < values.size(); ++i) {
    const float v = values[i];
    low[0] = v < low[0] ? v : low[0];
    high[0] = v > high[0] ? v : high[0];
    probe[0] += v * 0.0f;
  }
  Extremes result{low[0], high[0], true};
  for (std::size_t j = 0; j < kLanes; ++j) {
    result.min = std::min(result.min, low[j]);
    result.max = std::max(result.max, high[j]);
    if (probe[j] != 0) result.all_finite = false;
  }
  return result;
}

}  // namespace

double Histogram::limit() const { return std::ldexp(1.0, exponent_); }
double Histogram::width() const { return std::ldexp(1.0, exponent_ + 1) / kBins; }

std::uint64_t Histogram::total() const {
  std::uint64_t sum = zeros_;
  for (const std::uint64_t count : counts_) sum += count;
  return sum;
}

void Histogram::grow_to(int exponent) {
  if (counts_.empty()) {
    counts_.assign(kBins, 0);
    exponent_ = exponent;
    return;
  }
  for (; exponent_ < exponent; ++exponent_) {
    // Magnitude m of either sign goes to m / 2; outwards from the middle, so that nothing is overwritten unread.
    constexpr int kHalf = kBins / 2;
    for (int m = 0; m < kHalf / 2; ++m) {
      const auto at = [&](int bin) -> std::uint64_t& { return counts_[reef::at(bin)]; };
      at(kHalf + m) = at(kHalf + 2 * m) + at(kHalf + 2 * m + 1);
      at(kHalf - 1 - m) = at(kHalf - 1 - 2 * m) + at(kHalf - 2 - 2 * m);
    }
    std::fill_n(counts_.begin(), kHalf / 2, 0);
    std::fill_n(counts_.end() - kHalf / 2, kHalf / 2, 0);
  }
}

void Histogram::add(std::span<const float> values, float largest) {
  if (values.empty()) return;
  grow_to(exponent_above(largest));
  const auto per_bin = static_cast<float>(1.0 / width());
  // An odd step does not stay on the same channels of a tensor with an even number of them.
  const std::size_t step = (values.size() / static_cast<std::size_t>(kMaxValuesPerCall)) | 1;
  std::uint64_t* const middle = counts_.data() + kBins / 2;
  // Without branches: signs and zeros come as they like.
  for (std::size_t i = 0; i < values.size(); i += step) {
    const float v = values[i];
    const auto magnitude = static_cast<std::int32_t>(std::abs(v * per_bin));  // a power of two: exact
    const std::int32_t negative = -static_cast<std::int32_t>(v < 0);
    const auto is_zero = static_cast<std::uint64_t>(v == 0);
    zeros_ += is_zero;
    middle[magnitude ^ negative] += 1 - is_zero;  // -1 - magnitude on the left
  }
}

void Histogram::merge(const Histogram& other) {
  zeros_ += other.zeros_;
  if (other.counts_.empty()) return;
  if (counts_.empty()) {
    exponent_ = other.exponent_;
    counts_ = other.counts_;
    return;
  }
  Histogram copy = other;
  copy.grow_to(std::max(exponent_, other.exponent_));
  grow_to(copy.exponent_);
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += copy.counts_[i];
}

bool Histogram::restore(std::uint64_t zeros, int exponent, std::vector<std::uint64_t> counts) {
  constexpr int kLargestExponent = 128;  // of a float
  if (!counts.empty() && counts.size() != kBins) return false;
  if (exponent < kSmallestExponent || exponent > kLargestExponent) return false;
  zeros_ = zeros;
  exponent_ = exponent;
  counts_ = std::move(counts);
  return true;
}

void SampleStatistics::observe(std::span<const float> all, std::int64_t channel_count) {
  seen = true;
  values += all.size();
  const Extremes found = extremes(all);
  if (!found.all_finite || is_masked(found.min) || is_masked(found.max)) {
    for (const float v : all) {
      if (!is_masked(v)) {
        min = std::min(min, v);
        max = std::max(max, v);
        continue;
      }
      ++masked;
      not_finite += std::isfinite(v) ? 0u : 1u;
      infinite += std::isinf(v) ? 1u : 0u;
    }
    return;  // sums would be worthless
  }
  min = std::min(min, found.min);
  max = std::max(max, found.max);
  if (channel_count <= 0) return;
  const auto c = static_cast<std::size_t>(channel_count);
  if (channels.sum.size() != c) {
    channels.min.assign(c, std::numeric_limits<float>::infinity());
    channels.max.assign(c, -std::numeric_limits<float>::infinity());
    channels.sum.assign(c, 0);
    channels.count = 0;
  }
  std::vector<float> row_sum(c, 0);
  for (std::size_t row = 0; row + c <= all.size(); row += c) {
    for (std::size_t i = 0; i < c; ++i) {
      const float v = all[row + i];
      channels.min[i] = v < channels.min[i] ? v : channels.min[i];
      channels.max[i] = v > channels.max[i] ? v : channels.max[i];
      row_sum[i] += v;
    }
    ++channels.count;
  }
  for (std::size_t i = 0; i < c; ++i) channels.sum[i] += row_sum[i];
}

void SampleStatistics::clear() {
  ChannelStatistics memory = std::move(channels);
  *this = SampleStatistics();
  std::fill(memory.min.begin(), memory.min.end(), std::numeric_limits<float>::infinity());
  std::fill(memory.max.begin(), memory.max.end(), -std::numeric_limits<float>::infinity());
  std::fill(memory.sum.begin(), memory.sum.end(), 0);
  memory.count = 0;
  channels = std::move(memory);
}

void TensorStatistics::merge_sample(const SampleStatistics& sample) {
  if (!sample.seen) return;
  values += sample.values;
  not_finite += sample.not_finite;
  infinite += sample.infinite;
  if (sample.min > sample.max) return;  // nothing finite
  min = std::min(min, sample.min);
  max = std::max(max, sample.max);
  const double keep = samples == 0 ? 0 : kMovingAverage;
  average_min = keep * average_min + (1 - keep) * sample.min;
  average_max = keep * average_max + (1 - keep) * sample.max;
  ++samples;
  if (sample.channels.count == 0) return;
  if (channels.sum.size() != sample.channels.sum.size()) {
    channels = sample.channels;
    return;
  }
  for (std::size_t i = 0; i < channels.sum.size(); ++i) {
    channels.min[i] = std::min(channels.min[i], sample.channels.min[i]);
    channels.max[i] = std::max(channels.max[i], sample.channels.max[i]);
    channels.sum[i] += sample.channels.sum[i];
  }
  channels.count += sample.channels.count;
}

}  // namespace reef::quantize
