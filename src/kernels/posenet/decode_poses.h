// SPDX-License-Identifier: Apache-2.0
// From PoseNet's heat maps and offset fields to people: the greedy decoder of PersonLab (Papandreou et al.,
// arXiv:1803.08225), with the arithmetic and the order of Coral's implementation.
//
// A local maximum of any key point's heat map is a root. From it, neighbouring key points are found by following the
// mid-range offsets along the skeleton's edges and refining with the short-range offsets; whichever has the highest
// score is continued from first. Roots too close to the same key point of an earlier person are dropped, and
// overlapping key points do not count for a person's score.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace reef::kernels {

inline constexpr int kPoseKeypoints = 17;
inline constexpr int kPoseEdges = 16;  // in each direction

struct PoseFields {
  std::int32_t height = 0, width = 0;
  // [height, width, channels], in units of the field's cells:
  std::vector<float> scores;         // kPoseKeypoints channels, log-odds
  std::vector<float> short_offsets;  // 2 * kPoseKeypoints: all y, then all x
  std::vector<float> mid_offsets;    // 4 * kPoseEdges: forward y, forward x, backward y, backward x
};

struct PosePoint {
  float y = 0, x = 0;
};

struct Pose {
  PosePoint points[kPoseKeypoints];
  float point_scores[kPoseKeypoints];  // probabilities
  float score = 0;
};

struct PoseSettings {
  std::int64_t max_poses = 0;
  float score_threshold = 0;  // of a person and of a root
  float nms_radius = 0;       // in cells
};

// At most max_poses people, best first, in units of the field's cells. Gives up early when `expired` says so.
std::vector<Pose> decode_poses(const PoseFields& fields, const PoseSettings& settings,
                               const std::function<bool()>& expired);

}  // namespace reef::kernels
