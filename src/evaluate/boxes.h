// SPDX-License-Identifier: Apache-2.0
// Detections out of a detector's outputs. Coordinates are fractions of the model's input.
//
//   ssd    TFLite_Detection_PostProcess: boxes [1, n, 4] as ymin, xmin, ymax, xmax, classes [1, n], scores [1, n] and
//          the count, or in the order of TensorFlow 2's exporter: scores, boxes, count, classes
//   yolo5  [1, n, 5 + classes]: cx, cy, w, h, objectness, a probability for each class
//   yolo8  [1, 4 + classes, n]: cx, cy, w, h, a probability for each class (YOLOv8 to v12; yolo.h has the other forms)
// YOLO coordinates may be fractions or pixels of the input, which is told by their size. Overlapping boxes of one class
// are suppressed here, except for ssd, which has done so itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "evaluate/outputs.h"

namespace reef::evaluate {

struct Box {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};
struct Keypoint {
  double x = 0, y = 0;
  double score = 1;
};
struct Detection {
  Box box;
  int label = 0;
  double score = 0;
  std::vector<Keypoint> keypoints = {};   // of a pose
  std::vector<double> mask_factors = {};  // of an instance mask: the share that each prototype has in it
};

// Shared area as a share of the area of both; 0 for boxes without area.
double iou(const Box& a, const Box& b);

// Highest score first; of equal scores the earlier one first.
std::vector<Detection> suppressed(std::vector<Detection> detections, double iou_limit, std::size_t most);

struct DetectorOptions {
  std::string kind = "auto";  // ssd, yolo5, yolo8; auto: by the outputs' shapes
  double score_threshold = 0.001;
  double nms_iou = 0.5;
  double input_width = 1, input_height = 1;  // pixels
  int classes = 0;                           // 0: by the outputs' shapes
  int keypoints = 0, keypoint_numbers = 3;   // of each detection; 0: by the outputs' shapes and numbers
  std::string anchors;                       // of raw heads, see yolo_heads.h; empty: the usual ones
};
Result<std::vector<Detection>> decode_detections(std::span<const TensorValues> outputs, const DetectorOptions& options);

// Sizes of a tensor without the leading 1 of the batch.
std::vector<std::int64_t> dims_of(const ir::Shape& shape);
inline std::vector<std::int64_t> dims_of(const TensorValues& tensor) { return dims_of(tensor.shape); }

}  // namespace reef::evaluate
