// SPDX-License-Identifier: Apache-2.0
// The pieces of SSD-style detection: decoding boxes, and picking the best ones that do not overlap too much.
//
// Arithmetic and order of comparisons are those of TFLite's TFLite_Detection_PostProcess, so that the same boxes come
// out in the same order: sorting by score is stable, boxes that tie keep the order of their anchors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace reef::kernels {

struct Box {
  float y_min = 0, x_min = 0, y_max = 0, x_max = 0;
};
// Also used for the factors that encodings are divided by.
struct CenteredBox {
  float y = 0, x = 0, height = 0, width = 0;
};

// A box given relative to its anchor.
Box decode_box(const CenteredBox& encoded, const CenteredBox& anchor, const CenteredBox& scales);

// Area of intersection over area of union; 0 if either box has no area.
float intersection_over_union(const Box& a, const Box& b);

struct SuppressionLimits {
  float score_threshold = 0;  // lower scores are left out
  float iou_threshold = 0;    // a box that overlaps a better one by more than this is left out
  std::int64_t max_boxes = 0;
};

// Indices of the boxes that remain, best first. scores[i] belongs to boxes[i]. Gives up early, with a meaningless
// result, when the pool's deadline has passed.
std::vector<std::int32_t> suppress_overlaps(const ThreadPool& threads, std::span<const Box> boxes,
                                            std::span<const float> scores, const SuppressionLimits& limits);

// Indices of the `count` largest of `scores`, largest first. Which one of several equal scores comes first is that of
// the standard library's partial sort, except that a single index is that of the first maximum.
std::vector<std::int32_t> largest_scores(std::span<const float> scores, std::size_t count);

}  // namespace reef::kernels
