// SPDX-License-Identifier: Apache-2.0
// The output forms of the YOLO family, told apart by shapes and numbers.
//
//   one tensor     [1, n, 5 + classes] (v5, X: with objectness), [1, 4 + classes, n] (v8 to v12), each perhaps followed
//                  by factors of masks (segmentation) or by keypoints (pose)
//   final boxes    [1, n, 6]: x0, y0, x1, y1, score, class; overlaps are gone already (v10)
//   parts          the same cut along channels into several outputs, each with its own scale
//   raw heads      what the last convolutions give, before boxes are decoded (yolo_heads.h)
//
// Masks come with prototypes [1, h, w, m], which `prototypes` finds. Oriented boxes are not decoded.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "evaluate/boxes.h"
#include "evaluate/outputs.h"

namespace reef::evaluate {

inline constexpr std::size_t kMostDetections = 300;

Result<std::vector<Detection>> decode_yolo(std::span<const TensorValues> outputs, const DetectorOptions& options);

// Several outputs that are one, cut along its channels.
bool are_yolo_parts(std::span<const TensorValues> outputs);

// How many boxes a YOLO gives for pictures of this size, by number of strides and anchors: whether `n` is such a
// number.
bool is_number_of_boxes(std::int64_t n, double input_width, double input_height);

// The output that masks are made of, as [h, w, m]; nothing: there is none.
struct Prototypes {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<double> values;  // channels last
};
std::optional<Prototypes> prototypes(std::span<const TensorValues> outputs);

}  // namespace reef::evaluate
