// SPDX-License-Identifier: Apache-2.0
// Which person a pixel belongs to: BodyPix adds long-range offsets to PoseNet's fields, from every cell to all key
// points of the person that is there. Arithmetic, order and layout are those of Coral's decoder.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/posenet/decode_poses.h"

namespace reef::kernels {

struct LongOffsets {
  std::int32_t height = 0, width = 0;
  std::vector<float> values;  // [height, width, 2 * kPoseKeypoints], in cells: all y, then all x
};

// Sets one number of `masks` for every cell to 1 and leaves the others at 0: that of the person whose key points are
// closest to those that the cell points to. Points of `poses` are in cells; they are compared in pixels, `stride` to a
// cell. Without people every cell belongs to the first mask, as in Coral's.
//
// Cell (y, x) of person i is number (i * width + y) * height + x. That is Coral's layout; it is the natural one only
// where height equals width. Numbers beyond the end of `masks`, which Coral writes over other memory, are left out.
// Gives up early when `expired` says so.
void decode_instance_masks(const LongOffsets& offsets, std::span<const Pose> poses, float stride,
                           std::span<float> masks, const std::function<bool()>& expired);

}  // namespace reef::kernels
