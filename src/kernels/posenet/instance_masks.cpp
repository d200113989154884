// SPDX-License-Identifier: Apache-2.0
#include "kernels/posenet/instance_masks.h"

#include <algorithm>
#include <array>

#include "kernels/posenet/field_sampler.h"

namespace reef::kernels {
namespace {

constexpr int kRefinementSteps = 2;

using KeyPoints = std::array<PosePoint, kPoseKeypoints>;

PosePoint in_pixels(PosePoint cell, float stride) { return {cell.y * stride, cell.x * stride}; }

// The key points that a cell's offsets lead to: each is followed, and then refined by the offsets where it led.
KeyPoints pointed_to(const LongOffsets& offsets, PosePoint cell, float stride) {
  KeyPoints points;
  for (int k = 0; k < kPoseKeypoints; ++k) {
    PosePoint at = cell;
    for (int i = 0; i <= kRefinementSteps; ++i) {
      const FieldSampler sample(offsets.width, 2 * kPoseKeypoints, at);
      at = moved(offsets.height, offsets.width, at, sample(offsets.values, k),
                 sample(offsets.values, k + kPoseKeypoints));
    }
    points[static_cast<std::size_t>(k)] = in_pixels(at, stride);
  }
  return points;
}

// The first of several that are equally close.
std::size_t closest(const std::vector<KeyPoints>& people, const KeyPoints& points) {
  std::vector<float> distances;
  for (const KeyPoints& person : people) {
    float sum = 0;
    for (std::size_t k = 0; k < person.size(); ++k) sum += squared_distance(points[k], person[k]);
    distances.push_back(sum);
  }
  return static_cast<std::size_t>(std::min_element(distances.begin(), distances.end()) - distances.begin());
}

}  // namespace

void decode_instance_masks(const LongOffsets& offsets, std::span<const Pose> poses, float stride,
                           std::span<float> masks, const std::function<bool()>& expired) {
  std::fill(masks.begin(), masks.end(), 0.0f);
  std::vector<KeyPoints> people(poses.size());
  for (std::size_t i = 0; i < poses.size(); ++i) {
    for (std::size_t k = 0; k < people[i].size(); ++k) people[i][k] = in_pixels(poses[i].points[k], stride);
  }
  const auto height = static_cast<std::size_t>(offsets.height), width = static_cast<std::size_t>(offsets.width);
  for (std::size_t y = 0; y < height && !expired(); ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const PosePoint cell{static_cast<float>(y), static_cast<float>(x)};
      const std::size_t person = closest(people, pointed_to(offsets, cell, stride));
      const std::size_t at = (person * width + y) * height + x;
      if (at < masks.size()) masks[at] = 1.0f;
    }
  }
}

}  // namespace reef::kernels
