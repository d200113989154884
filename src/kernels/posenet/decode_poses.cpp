// SPDX-License-Identifier: Apache-2.0
#include "kernels/posenet/decode_poses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

#include "kernels/posenet/field_sampler.h"

namespace reef::kernels {
namespace {

constexpr int kRefinementSteps = 5;
constexpr int kLocalMaximumRadius = 1;

// The skeleton: edge i leads from the first to the second key point, edge i + kPoseEdges back.
// 0 nose, 1/2 eyes, 3/4 ears, 5/6 shoulders, 7/8 elbows, 9/10 wrists, 11/12 hips, 13/14 knees, 15/16 ankles; left
// first.
constexpr int kEdges[kPoseEdges][2] = {{0, 1},   {1, 3},   {0, 2}, {2, 4}, {0, 5},  {5, 7},  {7, 9},   {5, 11},
                                       {11, 13}, {13, 15}, {0, 6}, {6, 8}, {8, 10}, {6, 12}, {12, 14}, {14, 16}};

struct Candidate {
  PosePoint point;
  int keypoint = 0;
  float score = 0;
};
struct LowerScore {
  bool operator()(const Candidate& a, const Candidate& b) const { return a.score < b.score; }
};
// Which of two equal scores comes first is the heap's business, as in Coral's.
using BestFirst = std::priority_queue<Candidate, std::vector<Candidate>, LowerScore>;

float ordered(float score) { return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score; }

// Indices by falling score.
std::vector<int> falling_order(const float* scores, std::size_t count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [scores](int i, int j) { return scores[i] > scores[j]; });
  return order;
}

PosePoint moved(const PoseFields& fields, PosePoint from, float dy, float dx) {
  return kernels::moved(fields.height, fields.width, from, dy, dx);
}

PosePoint follow_edge(const PoseFields& fields, PosePoint from, int edge, int target) {
  const FieldSampler mid(fields.width, 4 * kPoseEdges, from);
  PosePoint at = moved(fields, from, mid(fields.mid_offsets, edge), mid(fields.mid_offsets, kPoseEdges + edge));
  for (int i = 0; i < kRefinementSteps; ++i) {
    const FieldSampler fine(fields.width, 2 * kPoseKeypoints, at);
    at = moved(fields, at, fine(fields.short_offsets, target), fine(fields.short_offsets, kPoseKeypoints + target));
  }
  return at;
}

float score_at(const PoseFields& fields, PosePoint at, int keypoint) {
  return ordered(FieldSampler(fields.width, kPoseKeypoints, at)(fields.scores, keypoint));
}

// First of the two channels (y; x is kPoseEdges later) with an edge's mid-range offsets. Backward edges have their own
// block, which Coral's decoder misses for the first of them (left eye to nose); the results depend on it.
int mid_offset_channel(int edge) { return edge > kPoseEdges ? edge + kPoseEdges : edge; }

void decode_from(const PoseFields& fields, const Candidate& root, Pose& pose) {
  BestFirst queue;
  queue.push({root.point, root.keypoint, score_at(fields, root.point, root.keypoint)});
  bool decoded[kPoseKeypoints] = {};
  while (!queue.empty()) {
    const Candidate current = queue.top();
    queue.pop();
    if (decoded[current.keypoint]) continue;
    decoded[current.keypoint] = true;
    pose.points[current.keypoint] = current.point;
    pose.point_scores[current.keypoint] = current.score;
    for (int edge = 0; edge < 2 * kPoseEdges; ++edge) {
      const bool forward = edge < kPoseEdges;
      const int* ends = kEdges[edge % kPoseEdges];
      const int child = ends[forward ? 1 : 0];
      if (ends[forward ? 0 : 1] != current.keypoint || decoded[child]) continue;
      const PosePoint point = follow_edge(fields, current.point, mid_offset_channel(edge), child);
      queue.push({point, child, score_at(fields, point, child)});
    }
  }
}

bool is_local_maximum(const PoseFields& fields, std::int32_t y, std::int32_t x, int keypoint, float score) {
  for (std::int32_t v = std::max(y - kLocalMaximumRadius, 0); v <= std::min(y + kLocalMaximumRadius, fields.height - 1);
       ++v) {
    for (std::int32_t u = std::max(x - kLocalMaximumRadius, 0);
         u <= std::min(x + kLocalMaximumRadius, fields.width - 1); ++u) {
      const std::int64_t cell = std::int64_t{v} * fields.width + u;
      if (fields.scores[static_cast<std::size_t>(cell * kPoseKeypoints + keypoint)] > score) return false;
    }
  }
  return true;
}

BestFirst find_roots(const PoseFields& fields, float lowest_score) {
  BestFirst roots;
  for (std::int32_t y = 0; y < fields.height; ++y) {
    for (std::int32_t x = 0; x < fields.width; ++x) {
      const std::int64_t cell = std::int64_t{y} * fields.width + x;
      for (int k = 0; k < kPoseKeypoints; ++k) {
        const float score = fields.scores[static_cast<std::size_t>(cell * kPoseKeypoints + k)];
        if (!(score >= lowest_score) || !is_local_maximum(fields, y, x, k, score)) continue;
        const float* offsets = fields.short_offsets.data() + cell * 2 * kPoseKeypoints;
        roots.push(
            {moved(fields, {static_cast<float>(y), static_cast<float>(x)}, offsets[k], offsets[k + kPoseKeypoints]), k,
             score});
      }
    }
  }
  return roots;
}

bool is_near_known_pose(const std::vector<Pose>& poses, const Candidate& root, float squared_radius) {
  return std::any_of(poses.begin(), poses.end(), [&](const Pose& pose) {
    return squared_distance(root.point, pose.points[root.keypoint]) <= squared_radius;
  });
}

// The mean of the points' scores, added up from the highest; those in `hidden` count as 0.
float mean_score(const Pose& pose, const bool (&hidden)[kPoseKeypoints]) {
  float total = 0;
  for (const int k : falling_order(pose.point_scores, kPoseKeypoints)) {
    if (!hidden[k]) total += pose.point_scores[k];
  }
  return total / kPoseKeypoints;
}

std::vector<float> scores_of(const std::vector<Pose>& poses) {
  std::vector<float> scores;
  for (const Pose& pose : poses) scores.push_back(pose.score);
  return scores;
}

// Scores without the key points that a better person covers.
void suppress_overlaps(std::vector<Pose>& poses, float squared_radius, const std::function<bool()>& expired) {
  const std::vector<float> scores = scores_of(poses);
  const std::vector<int> order = falling_order(scores.data(), scores.size());
  for (std::size_t i = 0; i < order.size() && !expired(); ++i) {
    Pose& pose = poses[static_cast<std::size_t>(order[i])];
    bool hidden[kPoseKeypoints] = {};
    for (std::size_t j = 0; j < i; ++j) {
      const Pose& better = poses[static_cast<std::size_t>(order[j])];
      for (int k = 0; k < kPoseKeypoints; ++k) {
        if (squared_distance(pose.points[k], better.points[k]) <= squared_radius) hidden[k] = true;
      }
    }
    pose.score = mean_score(pose, hidden);
  }
}

}  // namespace

std::vector<Pose> decode_poses(const PoseFields& fields, const PoseSettings& settings,
                               const std::function<bool()>& expired) {
  const auto lowest_score = static_cast<float>(-std::log(1.0f / (settings.score_threshold + 1e-6) - 1.0f));
  const float squared_radius = settings.nms_radius * settings.nms_radius;
  BestFirst roots = find_roots(fields, lowest_score);
  std::vector<Pose> poses;
  while (static_cast<std::int64_t>(poses.size()) < settings.max_poses && !roots.empty() && !expired()) {
    const Candidate root = roots.top();
    roots.pop();
    if (is_near_known_pose(poses, root, squared_radius)) continue;
    Pose pose;
    decode_from(fields, root, pose);
    for (float& score : pose.point_scores) score = 1.0f / (1.0f + std::exp(-score));
    constexpr bool kNoneHidden[kPoseKeypoints] = {};
    pose.score = mean_score(pose, kNoneHidden);
    if (pose.score >= settings.score_threshold) poses.push_back(pose);
  }
  suppress_overlaps(poses, squared_radius, expired);
  const std::vector<float> scores = scores_of(poses);
  std::vector<Pose> result;
  for (const int i : falling_order(scores.data(), scores.size())) {
    const Pose& pose = poses[static_cast<std::size_t>(i)];
    if (pose.score < settings.score_threshold) break;
    result.push_back(pose);
  }
  return result;
}

}  // namespace reef::kernels
