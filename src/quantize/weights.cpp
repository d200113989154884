// SPDX-License-Identifier: Apache-2.0
#include "quantize/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "quantize/scale_limits.h"

namespace reef::quantize {
namespace {

constexpr double kLargestBias = 1 << 30;  // leaves as much again to the sum of products
constexpr double kAboveSmallest = 1.001;  // products of scales are rounded
constexpr int kClipSteps = 50;
constexpr double kClipSmallest = 0.5;

// The scale with the smallest square error over one channel's weights.
float clipped_scale(const std::vector<float>& values, float largest) {
  double best_error = std::numeric_limits<double>::infinity();
  float best = largest / 127;
  for (int step = 0; step <= kClipSteps; ++step) {
    const double scale = largest / 127.0 * (1 - (1 - kClipSmallest) * step / kClipSteps);
    double error = 0;
    for (const float v : values) {
      const double q = std::clamp(std::nearbyint(v / scale), -127.0, 127.0);
      error += (q * scale - v) * (q * scale - v);
    }
    if (error < best_error) {
      best_error = error;
      best = static_cast<float>(scale);
    }
  }
  return best;
}

}  // namespace

ChannelLayout channel_layout(const ir::Shape& shape, int axis) {
  if (axis < 0) return {1, std::max<std::int64_t>(shape.elements(), 1)};
  return {shape[axis], shape.product(axis + 1, shape.rank())};
}

std::vector<float> weight_scales(std::span<const float> weights, const WeightRequest& request) {
  const auto count = static_cast<std::size_t>(request.layout.count);
  std::vector<float> largest(count, 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float& m = largest[request.layout.channel(i)];
    m = std::max(m, std::abs(weights[i]));
  }
  std::vector<float> scales(count);
  for (std::size_t c = 0; c < count; ++c) scales[c] = largest[c] / 127;
  if (request.clip) {
    std::vector<std::vector<float>> values(count);
    for (std::size_t i = 0; i < weights.size(); ++i) values[request.layout.channel(i)].push_back(weights[i]);
    for (std::size_t c = 0; c < count; ++c) {
      if (largest[c] > 0) scales[c] = clipped_scale(values[c], largest[c]);
    }
  }
  // A channel without weights: any scale will do, one like its neighbours' keeps the multipliers alike.
  const float usual = *std::max_element(scales.begin(), scales.end());
  for (float& scale : scales) {
    if (!(scale > std::numeric_limits<float>::min())) scale = usual > 0 ? usual : 1;
  }
  for (std::size_t b = 0; b < request.bias.size() && request.input_scale > 0; ++b) {
    float& scale = scales[count == 1 ? 0 : std::min(b, count - 1)];
    const double needed = std::abs(request.bias[b]) / (request.input_scale * kLargestBias);
    if (scale < needed) scale = static_cast<float>(needed);
  }
  raise_to_limits(scales, request.input_scale);
  return scales;
}

void raise_to_limits(std::vector<float>& scales, double input_scale) {
  const double factor = input_scale > 0 ? std::min(input_scale, 1.0) : 1;
  const auto floor = static_cast<float>(kAboveSmallest * kSmallestScale / factor);
  for (float& scale : scales) scale = std::max(scale, floor);
}

std::vector<std::int8_t> round_weights(std::span<const float> weights, const ChannelLayout& layout,
                                       std::span<const float> scales) {
  std::vector<std::int8_t> result(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double q = std::round(static_cast<double>(weights[i]) / scales[layout.channel(i)]);
    result[i] = static_cast<std::int8_t>(std::clamp(q, -127.0, 127.0));
  }
  return result;
}

template <typename T>
std::vector<T> round_bias(std::span<const float> bias, std::span<const float> scales) {
  std::vector<T> result(bias.size());
  constexpr double kLimit = 2147483647.0;  // also of int64: the accumulator of 16-bit kernels has 48 bits to spare
  for (std::size_t i = 0; i < bias.size(); ++i) {
    const double q = std::round(static_cast<double>(bias[i]) / scales[scales.size() == 1 ? 0 : i]);
    const double limit = sizeof(T) == 8 ? kLimit * 128 : kLimit;
    result[i] = static_cast<T>(std::clamp(q, -limit, limit));
  }
  return result;
}
template std::vector<std::int32_t> round_bias(std::span<const float>, std::span<const float>);
template std::vector<std::int64_t> round_bias(std::span<const float>, std::span<const float>);

std::vector<float> bias_scales(double input_scale, std::span<const float> weight_scales) {
  std::vector<float> result(weight_scales.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<float>(input_scale * static_cast<double>(weight_scales[i]));
  }
  return result;
}

bool is_per_channel(const ir::Operator& op, const QuantizeOptions& options) {
  return op.type != Op::FULLY_CONNECTED || options.per_channel_fully_connected;
}

}  // namespace reef::quantize
