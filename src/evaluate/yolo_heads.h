// SPDX-License-Identifier: Apache-2.0
// Raw heads of the YOLO family: outputs as the last convolutions leave them, before boxes are decoded.
//
//   distributions  (v8 to v12) 4 x 16 numbers for the distances to a box's sides and a score for each class, in every
//                  cell; in one output or in two
//   anchors        (v5, v7) 5 + classes numbers for each of usually 3 anchors, in every cell
//
// Both come as one map for each stride, [1, h, w, c], [1, c, h, w], [1, 3, h, w, c], [1, h * w, 3, c], or as rows of
// all cells, stride after stride, [1, n, c] or [1, c, n]. Scores may be given before or behind the logistic function;
// boxes of anchors likewise, always together with the scores.
//
// Anchors are in no model file. The ones of YOLOv5's published configurations are used unless others are given; a
// detector that was trained with its own anchors needs them. Not decoded: heads whose sizes are exponentials (Darknet's
// YOLOv3 and v4), oriented boxes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "evaluate/boxes.h"
#include "evaluate/outputs.h"

namespace reef::evaluate {

// For each stride, finest first: width and height of its anchors, in pixels of the model's input.
using Anchors = std::vector<std::vector<std::pair<double, double>>>;

// "yolov5", "yolov7", or numbers as in a training configuration: "10,13,16,30,33,23/30,61,62,45,59,119/...", one group
// for each stride.
Result<Anchors> parse_anchors(const std::string& text);

// Whether outputs of these shapes (without the batch) can be raw heads of a model with such an input. `classes`: 0 if
// their number is not known. Rows of anchors are not counted: decoded ones have the same shapes.
bool have_raw_head_shapes(const std::vector<std::vector<std::int64_t>>& shapes, const DetectorOptions& options);

// Boxes of raw heads; nothing: the outputs are something else.
struct HeadDetections {
  std::vector<Detection> detections;  // overlapping ones included
  bool has_assumed_anchors = false;   // YOLOv5's were taken, because none were given
};
Result<std::optional<HeadDetections>> decode_raw_heads(std::span<const TensorValues> outputs,
                                                       const DetectorOptions& options);

}  // namespace reef::evaluate
