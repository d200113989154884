// SPDX-License-Identifier: Apache-2.0
// What a model found in a picture, in fractions of that picture: detections with masks and keypoints, poses, a class
// for every place. Built from the outputs of one run by what the model is for (task.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/picture.h"
#include "evaluate/boxes.h"
#include "evaluate/outputs.h"
#include "evaluate/task.h"

namespace reef::evaluate {

// Rows of places, each with a number.
struct PlaceMap {
  int width = 0, height = 0;
  std::vector<std::int32_t> values;
};

struct Found {
  Detection what;  // boxes and keypoints in fractions of the picture
  PlaceMap mask;   // 1 where it is, over the whole of the model's input; empty: the model makes no masks
  bool has_box = true;
};

struct Segment {
  int label = 0;
  double share = 0;  // of all places
};

struct Findings {
  Task task;
  std::vector<Found> things;         // best first
  PlaceMap classes;                  // of a segmenter: over the whole of the model's input
  std::vector<Segment> segments;     // largest first
  bool has_assumed_anchors = false;  // boxes rest on YOLOv5's usual anchors, because the model does not say which
  // Where the picture lies in the model's input, for masks.
  data::Placement placement;
};

struct FindingOptions {
  double score_threshold = 0.25;
  double nms_iou = 0.45;
  PictureSize input;          // of the model
  data::Placement placement;  // of the picture in it
  data::ModelCard card;
  std::string anchors;  // of raw heads, see yolo_heads.h; empty: the usual ones
};

// For tasks that find something; an error where outputs are not what the task says.
Result<Findings> findings_of(const Task& task, std::span<const TensorValues> outputs, const FindingOptions& options);

// Whether the task's results are places in a picture.
bool finds_places(const Task& task);

}  // namespace reef::evaluate
