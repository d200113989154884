// SPDX-License-Identifier: Apache-2.0
// Each method reads the histogram only. Bins are fine (at least 1024 across the larger side) against 256 levels.
#include "quantize/range_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reef::quantize {
namespace {

// Ranges tried by the searching methods: the full one shrunk to this share, on each side.
constexpr int kShrinkSteps = 64;
constexpr double kSmallestShare = 0.2;
double share(int step) { return 1 - (1 - kSmallestShare) * step / (kShrinkSteps - 1); }

Range with_zero(double min, double max) {
  return {static_cast<float>(std::min(min, 0.0)), static_cast<float>(std::max(max, 0.0))};
}

Range percentile_range(const TensorStatistics& statistics, double percentile) {
  const Histogram& histogram = statistics.histogram;
  const auto counts = histogram.counts();
  if (counts.empty()) return with_zero(statistics.min, statistics.max);
  const double outside = static_cast<double>(histogram.total()) * (100 - percentile) / 100 / 2;  // on each side
  double sum = 0;
  int low = 0, high = Histogram::kBins - 1;
  for (; low < Histogram::kBins / 2; ++low) {
    sum += static_cast<double>(counts[at(low)]);
    if (sum > outside) break;
  }
  sum = 0;
  for (; high >= Histogram::kBins / 2; --high) {
    sum += static_cast<double>(counts[at(high)]);
    if (sum > outside) break;
  }
  return with_zero(std::max<double>(statistics.min, histogram.lower_edge(low)),
                   std::min<double>(statistics.max, histogram.lower_edge(high + 1)));
}

// Values outside come to lie on the last bin inside, as saturation does; then each level's bins share its mass evenly.
double divergence(const Histogram& histogram, const Range& range, int levels) {
  const auto counts = histogram.counts();
  const double width = histogram.width();
  // Bins hold their edge that is nearer to zero: the ends of the range themselves must be inside.
  constexpr int kMiddle = Histogram::kBins / 2;
  const int below = range.min < 0 ? static_cast<int>(std::ceil(range.min / width)) - 1 : 0;
  const int above = range.max > 0 ? static_cast<int>(std::floor(range.max / width)) + 1 : 0;
  const int low = std::clamp(kMiddle + below, 0, Histogram::kBins - 1);
  const int high = std::clamp(kMiddle + above, low + 1, Histogram::kBins);
  std::vector<double> p(counts.begin() + low, counts.begin() + high);
  std::vector<double> inside = p;
  for (int i = 0; i < low; ++i) p.front() += static_cast<double>(counts[at(i)]);
  for (int i = high; i < Histogram::kBins; ++i) p.back() += static_cast<double>(counts[at(i)]);
  double total = 0, total_inside = 0;
  for (const double v : p) total += v;
  for (const double v : inside) total_inside += v;
  if (total <= 0 || total_inside <= 0) return std::numeric_limits<double>::infinity();
  const double bins_per_level = std::max(1.0, static_cast<double>(p.size()) / levels);
  double result = 0;
  for (double begin = 0; begin < static_cast<double>(p.size()); begin += bins_per_level) {
    const auto first = static_cast<std::size_t>(begin);
    const auto last = std::min(p.size(), std::max(first + 1, static_cast<std::size_t>(begin + bins_per_level)));
    double mass = 0, occupied = 0;
    for (std::size_t i = first; i < last; ++i) {
      mass += inside[i];
      occupied += inside[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = first; i < last; ++i) {
      if (p[i] <= 0) continue;
      const double q = inside[i] > 0 ? mass / occupied / total_inside : 1e-9;
      result += p[i] / total * std::log(p[i] / total / q);
    }
  }
  return result;
}

// Whether there are enough values for the histogram to have a shape: in a sparse one, every narrower range looks
// better.
bool has_shape(const Histogram& histogram) {
  constexpr std::uint64_t kValuesPerBin = 8;
  std::uint64_t occupied = 0;
  for (const std::uint64_t count : histogram.counts()) occupied += count > 0 ? 1u : 0u;
  return occupied > 0 && histogram.total() - histogram.zeros() >= kValuesPerBin * occupied;
}

// Sums over bins from the left, so that the error of any range takes the same few steps.
class SquareErrors {
 public:
  explicit SquareErrors(const Histogram& histogram) : histogram_(histogram) {
    const auto counts = histogram.counts();
    sums_.resize(counts.size() + 1);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto count = static_cast<double>(counts[i]);
      const double centre = histogram.lower_edge(static_cast<int>(i)) + histogram.width() / 2;
      sums_[i + 1] = {sums_[i].count + count, sums_[i].first + count * centre,
                      sums_[i].second + count * centre * centre};
    }
  }

  double of(const Range& range, int levels) const {
    if (sums_.size() < 2) return 0;
    const double step = (static_cast<double>(range.max) - range.min) / (levels - 1);
    const std::size_t low = bins_below(range.min), high = bins_below(range.max);
    const double sum = sums_.back().count * step * step / 12 + beyond({}, sums_[low], range.min) +
                       beyond(sums_[high], sums_.back(), range.max);
    return sum / static_cast<double>(histogram_.total());
  }

 private:
  struct Sums {
    double count = 0, first = 0, second = 0;  // of values: how many, their sum, the sum of their squares
  };
  // Number of bins whose centre lies below `value`.
  std::size_t bins_below(double value) const {
    const double bins = std::ceil(value / histogram_.width() - 0.5) + Histogram::kBins / 2;
    return static_cast<std::size_t>(std::clamp<double>(bins, 0, Histogram::kBins));
  }
  // Sum of square distances to `limit` of the bins between two places.
  static double beyond(const Sums& from, const Sums& to, double limit) {
    return (to.second - from.second) - 2 * limit * (to.first - from.first) + limit * limit * (to.count - from.count);
  }

  const Histogram& histogram_;
  std::vector<Sums> sums_;
};

template <typename Cost>
Range search(const Range& full, bool symmetric, const Cost& cost) {
  Range best = full;
  double lowest = cost(full);
  const auto consider = [&](const Range& range) {
    const double now = cost(range);
    if (now < lowest) {
      lowest = now;
      best = range;
    }
  };
  for (int step = 1; step < kShrinkSteps; ++step) {
    const auto s = static_cast<float>(share(step));
    consider({full.min * s, full.max * s});
  }
  if (symmetric) return best;
  for (int pass = 0; pass < 2; ++pass) {
    const Range start = best;
    for (int step = 0; step < kShrinkSteps; ++step) {
      consider({start.min, full.max * static_cast<float>(share(step))});
    }
    const Range then = best;
    for (int step = 0; step < kShrinkSteps; ++step) {
      consider({full.min * static_cast<float>(share(step)), then.max});
    }
  }
  return best;
}

Range by_method(const TensorStatistics& statistics, const RangeRequest& request) {
  Range full = with_zero(statistics.min, statistics.max);
  if (request.symmetric) {
    const float m = std::max(-full.min, full.max);
    full = {-m, m};
  }
  const Histogram& histogram = statistics.histogram;
  switch (request.method) {
    case RangeMethod::kMinMax:
      return full;
    case RangeMethod::kMovingAverage:
      return with_zero(statistics.average_min, statistics.average_max);
    case RangeMethod::kPercentile:
      return percentile_range(statistics, request.percentile);
    case RangeMethod::kEntropy:
      if (!has_shape(histogram)) return full;
      return search(full, request.symmetric, [&](const Range& r) { return divergence(histogram, r, request.levels); });
    case RangeMethod::kMse:
      return search(full, request.symmetric, [errors = SquareErrors(histogram), &request](const Range& r) {
        return errors.of(r, request.levels);
      });
  }
  return full;
}

}  // namespace

std::string_view name_of(RangeMethod method) {
  switch (method) {
    case RangeMethod::kMinMax:
      return "minmax";
    case RangeMethod::kMovingAverage:
      return "moving-average";
    case RangeMethod::kPercentile:
      return "percentile";
    case RangeMethod::kEntropy:
      return "entropy";
    case RangeMethod::kMse:
      return "mse";
  }
  return "?";
}

Range hull(const Range& a, const Range& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

double quantization_error(const Histogram& histogram, const Range& range, int levels) {
  return SquareErrors(histogram).of(range, levels);
}

Range choose_range(const TensorStatistics& statistics, const RangeRequest& request) {
  const Range range = by_method(statistics, request);
  return with_zero(range.min * (1 + request.room), range.max * (1 + request.room));
}

}  // namespace reef::quantize
