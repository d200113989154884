// SPDX-License-Identifier: Apache-2.0
#include "kernels/detection/postprocess.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reef::kernels {

Box decode_box(const CenteredBox& encoded, const CenteredBox& anchor, const CenteredBox& scales) {
  const auto center = [](double offset, double scale, double size, double at) {
    return static_cast<float>(offset / scale * size + at);
  };
  const auto half = [](double log_size, double scale, double size) {
    return static_cast<float>(0.5 * std::exp(log_size / scale) * size);
  };
  const float y = center(encoded.y, scales.y, anchor.height, anchor.y);
  const float x = center(encoded.x, scales.x, anchor.width, anchor.x);
  const float half_height = half(encoded.height, scales.height, anchor.height);
  const float half_width = half(encoded.width, scales.width, anchor.width);
  return {y - half_height, x - half_width, y + half_height, x + half_width};
}

float intersection_over_union(const Box& a, const Box& b) {
  const float area_a = (a.y_max - a.y_min) * (a.x_max - a.x_min);
  const float area_b = (b.y_max - b.y_min) * (b.x_max - b.x_min);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  const float width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const float intersection = std::max(height, 0.0f) * std::max(width, 0.0f);
  return intersection / (area_a + area_b - intersection);
}

std::vector<std::int32_t> suppress_overlaps(const ThreadPool& threads, std::span<const Box> boxes,
                                            std::span<const float> scores, const SuppressionLimits& limits) {
  std::vector<std::int32_t> candidates;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] >= limits.score_threshold) candidates.push_back(static_cast<std::int32_t>(i));
  }
  const auto score = [&](std::int32_t i) { return scores[static_cast<std::size_t>(i)]; };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::int32_t i, std::int32_t j) { return score(i) > score(j); });
  std::vector<bool> is_suppressed(candidates.size());
  std::vector<std::int32_t> selected;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (static_cast<std::int64_t>(selected.size()) >= limits.max_boxes || threads.past_deadline()) break;
    if (is_suppressed[i]) continue;
    selected.push_back(candidates[i]);
    const Box& box = boxes[static_cast<std::size_t>(candidates[i])];
    for (std::size_t j = i + 1; j < candidates.size(); ++j) {
      if (is_suppressed[j]) continue;
      const Box& other = boxes[static_cast<std::size_t>(candidates[j])];
      is_suppressed[j] = intersection_over_union(box, other) > limits.iou_threshold;
    }
  }
  return selected;
}

std::vector<std::int32_t> largest_scores(std::span<const float> scores, std::size_t count) {
  if (count == 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < scores.size(); ++i) {
      if (scores[i] > scores[best]) best = i;
    }
    return {static_cast<std::int32_t>(best)};
  }
  std::vector<std::int32_t> indices(scores.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count), indices.end(),
                    [&](std::int32_t i, std::int32_t j) {
                      return scores[static_cast<std::size_t>(i)] > scores[static_cast<std::size_t>(j)];
                    });
  indices.resize(count);
  return indices;
}

}  // namespace reef::kernels
