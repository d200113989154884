// SPDX-License-Identifier: Apache-2.0
// Bilinear samples of PoseNet's fields, in the order of operations of Coral's decoder.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/posenet/decode_poses.h"

namespace reef::kernels {

// At one point of a [height, width, channels] field. The point must be inside.
class FieldSampler {
 public:
  FieldSampler(std::int32_t width, std::int64_t channels, PosePoint at) {
    const float top = std::floor(at.y), left = std::floor(at.x);
    y_fraction_ = at.y - top;
    x_fraction_ = at.x - left;
    const auto y0 = static_cast<std::int64_t>(top), y1 = static_cast<std::int64_t>(std::ceil(at.y));
    const auto x0 = static_cast<std::int64_t>(left), x1 = static_cast<std::int64_t>(std::ceil(at.x));
    top_left_ = (y0 * width + x0) * channels;
    top_right_ = (y0 * width + x1) * channels;
    bottom_left_ = (y1 * width + x0) * channels;
    bottom_right_ = (y1 * width + x1) * channels;
  }
  float operator()(const std::vector<float>& field, int channel) const {
    const float* f = field.data() + channel;
    return (1 - y_fraction_) * ((1 - x_fraction_) * f[top_left_] + x_fraction_ * f[top_right_]) +
           y_fraction_ * ((1 - x_fraction_) * f[bottom_left_] + x_fraction_ * f[bottom_right_]);
  }

 private:
  float y_fraction_, x_fraction_;
  std::int64_t top_left_, top_right_, bottom_left_, bottom_right_;
};

// NaN, which only float models can produce, becomes the lower limit.
inline float limit(float value, float low, float high) { return !(value > low) ? low : value > high ? high : value; }

// A point moved by an offset, kept inside of a field.
inline PosePoint moved(std::int32_t height, std::int32_t width, PosePoint from, float dy, float dx) {
  return {limit(from.y + dy, 0.0f, static_cast<float>(height) - 1.0f),
          limit(from.x + dx, 0.0f, static_cast<float>(width) - 1.0f)};
}

inline float squared_distance(PosePoint a, PosePoint b) {
  const float dy = b.y - a.y;
  const float dx = b.x - a.x;
  return dy * dy + dx * dx;
}

}  // namespace reef::kernels
