// SPDX-License-Identifier: Apache-2.0
#include "evaluate/layer_statistics.h"

#include <algorithm>
#include <cmath>

namespace reef::evaluate {

void ErrorSums::merge(const ErrorSums& other) {
  signal += other.signal;
  noise += other.noise;
  sum += other.sum;
  largest = std::max(largest, other.largest);
  count += other.count;
}

double ErrorSums::sqnr_db() const {
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  if (noise == 0) return std::numeric_limits<double>::infinity();
  // Nothing but noise: as bad as can be told.
  return signal > 0 ? 10 * std::log10(signal / noise) : -99;
}

double ErrorSums::rms() const { return count > 0 ? std::sqrt(noise / static_cast<double>(count)) : 0; }

Representable Representable::of(ir::DataType type, const ir::Quantization& quantization) {
  Representable range;
  if (quantization.scale.size() != 1 || !(quantization.scale[0] > 0)) return range;
  switch (type) {
    case ir::DataType::kInt8:
      range.least_code = -128;
      range.most_code = 127;
      break;
    case ir::DataType::kUInt8:
      range.most_code = 255;
      break;
    case ir::DataType::kInt16:
      range.least_code = -32768;
      range.most_code = 32767;
      break;
    default:
      return range;
  }
  range.is_quantized = true;
  range.scale = quantization.scale[0];
  range.zero_point = quantization.zero_point.empty() ? 0 : quantization.zero_point[0];
  range.low = range.value_of(range.least_code);
  range.high = range.value_of(range.most_code);
  return range;
}

double Representable::code_of(double value) const {
  if (std::isnan(value)) return static_cast<double>(zero_point);
  return std::clamp(std::round(value / scale) + static_cast<double>(zero_point), least_code, most_code);
}

ValueStatistics::ValueStatistics(const Representable& range) : range_(range), bins_(kBins, 0) {
  const double span = range.is_quantized ? range.high - range.low : 2;
  low_ = (range.is_quantized ? range.low : -1) - span / 2;
  high_ = (range.is_quantized ? range.high : 1) + span / 2;
}

void ValueStatistics::add(std::span<const float> values, std::int64_t channels) {
  constexpr std::int64_t kMaxChannels = 4096;
  const double per_unit = kBins / (high_ - low_), slack = range_.scale / 2;
  const bool by_channel = channels >= 2 && channels <= kMaxChannels;
  if (by_channel) channel_maxima_.resize(static_cast<std::size_t>(channels), 0);
  std::size_t channel = 0;
  for (const float value : values) {
    if (by_channel) {
      channel_maxima_[channel] = std::max(channel_maxima_[channel], std::abs(value));
      channel = channel + 1 == channel_maxima_.size() ? 0 : channel + 1;
    }
    if (std::isnan(value)) continue;
    const double place = std::clamp((value - low_) * per_unit, 0.0, static_cast<double>(kBins - 1));
    ++bins_[static_cast<std::size_t>(place)];
    min_ = std::min<double>(min_, value);
    max_ = std::max<double>(max_, value);
    if (range_.is_quantized && (value < range_.low - slack || value > range_.high + slack)) ++clipped_;
    ++count_;
  }
}

void ValueStatistics::merge(const ValueStatistics& other) {
  for (std::size_t i = 0; i < bins_.size() && i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
  count_ += other.count_;
  clipped_ += other.clipped_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  if (channel_maxima_.size() < other.channel_maxima_.size()) channel_maxima_.resize(other.channel_maxima_.size(), 0);
  for (std::size_t i = 0; i < other.channel_maxima_.size(); ++i)
    channel_maxima_[i] = std::max(channel_maxima_[i], other.channel_maxima_[i]);
}

double ValueStatistics::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  std::int64_t below = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    below += bins_[i];
    if (static_cast<double>(below) < wanted || below == 0) continue;
    // The outermost bins have no end of their own. Of the others the end that is further out, so that the range is not
    // taken for smaller than it is.
    const double width = (high_ - low_) / kBins;
    const double edge = low_ + (static_cast<double>(i) + (share > 0.5 ? 1 : 0)) * width;
    return std::clamp(i == 0 ? min_ : i + 1 == bins_.size() ? max_ : edge, min_, max_);
  }
  return max_;
}

std::vector<std::int64_t> ValueStatistics::bars(int count) const {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count), 0);
  for (std::size_t i = 0; i < bins_.size(); ++i) result[i * result.size() / bins_.size()] += bins_[i];
  return result;
}

}  // namespace reef::evaluate
