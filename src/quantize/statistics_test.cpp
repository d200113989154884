// SPDX-License-Identifier: Apache-2.0
// Statistics against sorted values and plain loops; independence of order and of how samples are dealt out.
#include "quantize/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "quantize/range_choice.h"

namespace reef::quantize {
namespace {

std::vector<std::vector<float>> samples(int count, int size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<float>> result;
  for (int s = 0; s < count; ++s) {
    // Ranges that grow and shrink by orders of magnitude, zeros among the values.
    std::normal_distribution<float> normal(0.1f, std::ldexp(1.0f, s % 7 - 3));
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& v : values) v = random() % 5 == 0 ? 0.0f : normal(random);
    result.push_back(std::move(values));
  }
  return result;
}

float magnitude(const std::vector<float>& values) {
  float m = 0;
  for (const float v : values) m = std::max(m, std::abs(v));
  return m;
}

TensorStatistics statistics_of(const std::vector<std::vector<float>>& all, std::int64_t channels = 0) {
  TensorStatistics result;
  for (const auto& values : all) {
    SampleStatistics sample;
    sample.observe(values, channels);
    result.merge_sample(sample);
    result.histogram.add(values, magnitude(values));
  }
  return result;
}

// In pieces so small that every value is counted.
TensorStatistics statistics_of_all(const std::vector<float>& values) {
  std::vector<std::vector<float>> pieces;
  for (std::size_t i = 0; i < values.size(); i += 4000) {
    pieces.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                        values.begin() + static_cast<std::ptrdiff_t>(std::min(i + 4000, values.size())));
  }
  return statistics_of(pieces);
}

TEST(QuantizeStatistics, HistogramDoesNotDependOnOrderOrDealing) {
  auto all = samples(12, 999, 1);
  const TensorStatistics forwards = statistics_of(all);
  std::reverse(all.begin(), all.end());
  const TensorStatistics backwards = statistics_of(all);
  Histogram dealt[3];
  for (std::size_t i = 0; i < all.size(); ++i) dealt[i * 7 % 3].add(all[i], magnitude(all[i]));
  dealt[2].merge(dealt[0]);
  dealt[2].merge(dealt[1]);
  const auto counts = forwards.histogram.counts();
  EXPECT_TRUE(std::equal(counts.begin(), counts.end(), backwards.histogram.counts().begin()));
  EXPECT_TRUE(std::equal(counts.begin(), counts.end(), dealt[2].counts().begin()));
  EXPECT_EQ(forwards.histogram.zeros(), dealt[2].zeros());
  EXPECT_EQ(forwards.histogram.total(), 12u * 999u);
}

TEST(QuantizeStatistics, HistogramCountsEveryValueInItsBin) {
  const auto all = samples(5, 1234, 2);
  const TensorStatistics statistics = statistics_of(all);
  const Histogram& histogram = statistics.histogram;
  std::vector<std::uint64_t> expected(Histogram::kBins, 0);
  std::uint64_t zeros = 0;
  for (const auto& values : all) {
    for (const float v : values) {
      if (v == 0) {
        ++zeros;
        continue;
      }
      const auto m = static_cast<int>(std::abs(v) / histogram.width());
      ++expected[at(v < 0 ? Histogram::kBins / 2 - 1 - m : Histogram::kBins / 2 + m)];
    }
  }
  EXPECT_EQ(histogram.zeros(), zeros);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), histogram.counts().begin()));
}

TEST(QuantizeStatistics, ExtremesAndSumsPerChannel) {
  const auto all = samples(3, 40 * 6, 3);
  const TensorStatistics statistics = statistics_of(all, 6);
  for (std::size_t c = 0; c < 6; ++c) {
    float low = INFINITY, high = -INFINITY;
    double sum = 0;
    for (const auto& values : all) {
      for (std::size_t i = c; i < values.size(); i += 6) {
        low = std::min(low, values[i]);
        high = std::max(high, values[i]);
        sum += values[i];
      }
    }
    EXPECT_EQ(statistics.channels.min[c], low);
    EXPECT_EQ(statistics.channels.max[c], high);
    EXPECT_NEAR(statistics.channels.mean(c), sum / 120, 1e-4);
  }
}

TEST(QuantizeStatistics, ValuesThatAreNotNumbersAreCounted) {
  std::vector<float> values(100, 0.5f);
  values[3] = NAN;
  values[50] = INFINITY;
  values[99] = -1;
  SampleStatistics sample;
  sample.observe(values, 0);
  EXPECT_EQ(sample.not_finite, 2u);
  EXPECT_EQ(sample.min, -1);
  EXPECT_EQ(sample.max, 0.5f);
}

TEST(QuantizeRanges, PercentileAgreesWithSorting) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.3f, 2);
  std::vector<float> values(16000);
  for (float& v : values) v = normal(random);
  const TensorStatistics statistics = statistics_of_all(values);
  std::sort(values.begin(), values.end());
  for (const double percentile : {90.0, 99.0, 99.9}) {
    const Range range = choose_range(statistics, {RangeMethod::kPercentile, percentile});
    const auto outside = static_cast<std::size_t>(16000 * (100 - percentile) / 200);
    EXPECT_NEAR(range.min, values[outside], 0.05) << percentile;
    EXPECT_NEAR(range.max, values[values.size() - 1 - outside], 0.05) << percentile;
  }
}

double true_error(const std::vector<float>& values, const Range& range, int levels) {
  const double step = (static_cast<double>(range.max) - range.min) / (levels - 1);
  double sum = 0;
  for (const float v : values) {
    const double q = std::clamp(std::round((v - range.min) / step), 0.0, levels - 1.0);
    sum += std::pow(range.min + q * step - v, 2);
  }
  return sum / static_cast<double>(values.size());
}

TEST(QuantizeRanges, SmallestSquareErrorIsSmaller) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(16000);
  for (float& v : values) v = normal(random);
  const TensorStatistics statistics = statistics_of_all(values);
  for (const int levels : {16, 64}) {
    const Range full = choose_range(statistics, {RangeMethod::kMinMax, 0, levels});
    const Range mse = choose_range(statistics, {RangeMethod::kMse, 0, levels});
    EXPECT_LT(true_error(values, mse, levels), 0.95 * true_error(values, full, levels));
    // What the histogram estimates is near what quantizing gives.
    EXPECT_NEAR(quantization_error(statistics.histogram, full, levels), true_error(values, full, levels),
                0.1 * true_error(values, full, levels));
  }
  // With 256 levels, an outlier that is far out is worth its room: cutting it costs more than steps three times as
  // wide.
  values[77] = 40;
  EXPECT_GT(choose_range(statistics_of_all(values), {RangeMethod::kMse}).max, 30);
}

TEST(QuantizeRanges, EntropyCutsOutliers) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(16000);
  for (float& v : values) v = normal(random);
  const Range all = choose_range(statistics_of_all(values), {RangeMethod::kEntropy});
  EXPECT_GT(all.max, 2);
  values[5] = 12;
  const Range cut = choose_range(statistics_of_all(values), {RangeMethod::kEntropy});
  EXPECT_LT(cut.max, 10);
}

// Pictures of things on a black background: most values are the least one, which lies on the edge of a bin.
TEST(QuantizeRanges, EntropyKeepsABackground) {
  std::mt19937 random(7);
  std::vector<float> values(16000, -1.0f);
  for (std::size_t i = 0; i < values.size(); i += 3) values[i] = static_cast<float>(random() % 2001) / 1000 - 1;
  const Range range = choose_range(statistics_of_all(values), {RangeMethod::kEntropy});
  EXPECT_LT(range.min, -0.95f);
}

TEST(QuantizeRanges, ZeroIsAlwaysInside) {
  std::vector<float> values(100, 3.0f);
  for (const RangeMethod method : {RangeMethod::kMinMax, RangeMethod::kMovingAverage, RangeMethod::kPercentile,
                                   RangeMethod::kEntropy, RangeMethod::kMse}) {
    const Range range = choose_range(statistics_of_all(values), {method});
    EXPECT_EQ(range.min, 0) << name_of(method);
    EXPECT_GT(range.max, 2.9f) << name_of(method);
  }
}

}  // namespace
}  // namespace reef::quantize
