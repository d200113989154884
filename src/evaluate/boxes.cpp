// SPDX-License-Identifier: Apache-2.0
#include "evaluate/boxes.h"

#include <algorithm>

#include "evaluate/yolo.h"

namespace reef::evaluate {
namespace {

constexpr std::size_t kMostCandidates = 5000;

bool looks_like_ssd(std::span<const TensorValues> outputs) {
  if (outputs.size() < 3) return false;
  for (const TensorValues& output : outputs) {
    const auto dims = dims_of(output);
    if (dims.size() == 2 && dims[1] == 4) return true;
  }
  return false;
}

Result<std::vector<Detection>> decode_ssd(std::span<const TensorValues> outputs, const DetectorOptions& options) {
  REEF_REQUIRE(outputs.size() >= 3, "an ssd detector has outputs for boxes, classes and scores; there are {}",
               outputs.size());
  const auto is_boxes = [&](std::size_t i) { return dims_of(outputs[i]).size() == 2 && dims_of(outputs[i])[1] == 4; };
  const bool is_tf2_order = !is_boxes(0) && is_boxes(1) && outputs.size() >= 4;
  REEF_REQUIRE(is_tf2_order || is_boxes(0), "no output of the detector is boxes [1, n, 4]");
  const TensorValues& boxes = outputs[is_tf2_order ? 1 : 0];
  const TensorValues& classes = outputs[is_tf2_order ? 3 : 1];
  const TensorValues& scores = outputs[is_tf2_order ? 0 : 2];
  std::size_t count = boxes.values.size() / 4;
  if (outputs.size() >= 4 && !outputs[is_tf2_order ? 2 : 3].values.empty()) {
    const double said = outputs[is_tf2_order ? 2 : 3].values[0];
    if (said >= 0) count = std::min(count, static_cast<std::size_t>(said));
  }
  REEF_REQUIRE(classes.values.size() >= count && scores.values.size() >= count,
               "the detector gives {} boxes, but {} classes and {} scores", count, classes.values.size(),
               scores.values.size());
  std::vector<Detection> detections;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(scores.values[i] > options.score_threshold)) continue;
    const double* box = boxes.values.data() + 4 * i;
    detections.push_back({{box[1], box[0], box[3], box[2]}, static_cast<int>(classes.values[i]), scores.values[i]});
  }
  std::stable_sort(detections.begin(), detections.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return detections;
}

}  // namespace

std::vector<std::int64_t> dims_of(const ir::Shape& shape) {
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  if (dims.size() > 1 && dims[0] == 1) dims.erase(dims.begin());
  return dims;
}

double iou(const Box& a, const Box& b) {
  const double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0), h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(w > 0) || !(h > 0)) return 0;
  const double both = w * h;
  const double either = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - both;
  return either > 0 ? both / either : 0;
}

std::vector<Detection> suppressed(std::vector<Detection> detections, double iou_limit, std::size_t most) {
  std::stable_sort(detections.begin(), detections.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  if (detections.size() > kMostCandidates) detections.resize(kMostCandidates);
  std::vector<Detection> kept;
  for (const Detection& candidate : detections) {
    const bool is_hidden = std::any_of(kept.begin(), kept.end(), [&](const Detection& other) {
      return other.label == candidate.label && iou(other.box, candidate.box) > iou_limit;
    });
    if (!is_hidden) kept.push_back(candidate);
    if (kept.size() == most) break;
  }
  return kept;
}

Result<std::vector<Detection>> decode_detections(std::span<const TensorValues> outputs,
                                                 const DetectorOptions& options) {
  REEF_REQUIRE(!outputs.empty(), "the model has no outputs");
  // A post-processing operator's classes and scores have one number per box, parts of a YOLO output have rows.
  const bool may_be_ssd = options.kind == "auto" && !are_yolo_parts(outputs) && looks_like_ssd(outputs);
  if (options.kind == "ssd" || may_be_ssd) return decode_ssd(outputs, options);
  REEF_REQUIRE(options.kind == "auto" || options.kind == "yolo5" || options.kind == "yolo8",
               "there is no detector '{}'; there are ssd, yolo5, yolo8", options.kind);
  return decode_yolo(outputs, options);
}

}  // namespace reef::evaluate
