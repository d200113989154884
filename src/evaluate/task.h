// SPDX-License-Identifier: Apache-2.0
// What a model is for, told from what its file says, from its operators and from the shapes of its outputs: so that
// results are shown as what they are, and not as lists of numbers.
#pragma once

#include <string>
#include <vector>

#include "data/model_card.h"
#include "ir/model.h"

namespace reef::evaluate {

enum class TaskKind {
  kNumbers,     // nothing is known
  kClassifier,  // one row of scores
  kDetector,    // boxes, perhaps with masks or keypoints
  kSegmenter,   // a class for every place
  kPose,        // keypoints of a body (MoveNet, PoseNet)
  kPicture,     // a picture
};

struct Task {
  TaskKind kind = TaskKind::kNumbers;
  std::string family;  // "ssd", "yolo", "movenet", "posenet"; may be empty
};

// `outputs`: the shapes that they have in the run; `input`: of the picture, width and height, 0 if there is none.
struct PictureSize {
  double width = 0, height = 0;
};
Task task_of(const ir::Model& model, const std::vector<ir::Shape>& outputs, PictureSize input,
             const data::ModelCard& card);
// The same by the shapes that the model declares.
Task task_of(const ir::Model& model);

// Size of the picture that the model's first input takes; 0 if that is no picture.
PictureSize input_picture(const ir::Model& model);

}  // namespace reef::evaluate
