// SPDX-License-Identifier: Apache-2.0
#include "evaluate/findings.h"

#include <algorithm>
#include <map>

#include "evaluate/yolo.h"
#include "evaluate/yolo_heads.h"

namespace reef::evaluate {
namespace {

// From the model's input to the picture, both as fractions; nothing lies outside of the picture.
double to_picture(double at, double scale, double offset) { return std::clamp((at - offset) / scale, 0.0, 1.0); }

void place(const data::Placement& p, Detection& found) {
  found.box = {to_picture(found.box.x0, p.x_scale, p.x_offset), to_picture(found.box.y0, p.y_scale, p.y_offset),
               to_picture(found.box.x1, p.x_scale, p.x_offset), to_picture(found.box.y1, p.y_scale, p.y_offset)};
  for (Keypoint& point : found.keypoints) {
    point.x = to_picture(point.x, p.x_scale, p.x_offset);
    point.y = to_picture(point.y, p.y_scale, p.y_offset);
  }
}

// Prototypes, weighted, above 0, inside the box; `box` in fractions of the model's input.
PlaceMap mask_of(const Prototypes& from, const std::vector<double>& factors, const Box& box) {
  PlaceMap mask{static_cast<int>(from.width), static_cast<int>(from.height), {}};
  mask.values.assign(static_cast<std::size_t>(from.width * from.height), 0);
  for (std::int64_t y = 0; y < from.height; ++y) {
    const double fy = (static_cast<double>(y) + 0.5) / static_cast<double>(from.height);
    if (fy < box.y0 || fy > box.y1) continue;
    for (std::int64_t x = 0; x < from.width; ++x) {
      const double fx = (static_cast<double>(x) + 0.5) / static_cast<double>(from.width);
      if (fx < box.x0 || fx > box.x1) continue;
      const auto cell = static_cast<std::size_t>(y * from.width + x);
      double sum = 0;
      for (std::size_t c = 0; c < factors.size(); ++c) sum += factors[c] * from.values[cell * factors.size() + c];
      mask.values[cell] = sum > 0 ? 1 : 0;
    }
  }
  return mask;
}

Result<Findings> find_things(const Task& task, std::span<const TensorValues> outputs, const FindingOptions& options) {
  DetectorOptions how;
  how.kind = task.family == "ssd" ? "ssd" : "auto";
  how.score_threshold = options.score_threshold;
  how.nms_iou = options.nms_iou;
  how.input_width = options.input.width;
  how.input_height = options.input.height;
  how.classes = static_cast<int>(options.card.names.size());
  how.keypoints = options.card.keypoints;
  how.keypoint_numbers = options.card.keypoint_numbers;
  how.anchors = options.anchors;
  REEF_ASSIGN_OR_RETURN(std::vector<Detection> detections, decode_detections(outputs, how));
  const std::optional<Prototypes> masks = task.family == "yolo" ? prototypes(outputs) : std::nullopt;
  Findings findings;
  if (how.kind == "auto") {
    REEF_ASSIGN_OR_RETURN(const std::optional<HeadDetections> raw, decode_raw_heads(outputs, how));
    findings.has_assumed_anchors = raw && raw->has_assumed_anchors;
  }
  for (Detection& detection : detections) {
    Found found;
    if (masks && detection.mask_factors.size() == static_cast<std::size_t>(masks->channels)) {
      found.mask = mask_of(*masks, detection.mask_factors, detection.box);
    }
    place(options.placement, detection);
    found.what = std::move(detection);
    findings.things.push_back(std::move(found));
  }
  return findings;
}

Box around(const std::vector<Keypoint>& points, double least_score) {
  Box box{1, 1, 0, 0};
  for (const Keypoint& point : points) {
    if (point.score < least_score) continue;
    box = {std::min(box.x0, point.x), std::min(box.y0, point.y), std::max(box.x1, point.x), std::max(box.y1, point.y)};
  }
  return box.x1 < box.x0 ? Box() : box;
}

// [1, 1, 17, 3]: y, x, score.
Result<Findings> find_movenet(std::span<const TensorValues> outputs, const FindingOptions& options) {
  Findings findings;
  Found found;
  const std::vector<double>& values = outputs[0].values;
  double sum = 0;
  for (std::size_t i = 0; i + 2 < values.size(); i += 3) {
    found.what.keypoints.push_back({values[i + 1], values[i], values[i + 2]});
    sum += values[i + 2];
  }
  REEF_REQUIRE(!found.what.keypoints.empty(), "output '{}' holds no keypoints", outputs[0].name);
  found.what.score = sum / static_cast<double>(found.what.keypoints.size());
  found.has_box = false;
  place(options.placement, found.what);
  found.what.box = around(found.what.keypoints, options.score_threshold);
  if (found.what.score > options.score_threshold / 2) findings.things.push_back(std::move(found));
  return findings;
}

// PosenetDecoderOp: places [1, n, k, 2] as y, x in pixels of the input, scores of keypoints [1, n, k] and of poses
// [1, n], and how many poses there are.
Result<Findings> find_posenet(std::span<const TensorValues> outputs, const FindingOptions& options) {
  REEF_REQUIRE(outputs.size() >= 3, "a PoseNet has outputs for keypoints and two kinds of scores; there are {}",
               outputs.size());
  const auto dims = dims_of(outputs[0].shape);
  REEF_REQUIRE(dims.size() == 3 && dims[2] == 2, "output '{}' {} does not hold poses", outputs[0].name,
               outputs[0].shape.to_string());
  const auto poses = static_cast<std::size_t>(dims[0]), points = static_cast<std::size_t>(dims[1]);
  REEF_REQUIRE(outputs[1].values.size() >= poses * points && outputs[2].values.size() >= poses,
               "scores of the poses are missing");
  Findings findings;
  for (std::size_t i = 0; i < poses; ++i) {
    Found found;
    found.what.score = outputs[2].values[i];
    found.has_box = false;
    if (!(found.what.score > options.score_threshold)) continue;
    for (std::size_t k = 0; k < points; ++k) {
      const double* at = outputs[0].values.data() + 2 * (i * points + k);
      found.what.keypoints.push_back(
          {at[1] / options.input.width, at[0] / options.input.height, outputs[1].values[i * points + k]});
    }
    place(options.placement, found.what);
    found.what.box = around(found.what.keypoints, options.score_threshold);
    findings.things.push_back(std::move(found));
  }
  return findings;
}

// [h, w] class numbers, [h, w, 1] a probability, [h, w, c] or [c, h, w] scores.
Result<Findings> find_segments(std::span<const TensorValues> outputs) {
  const auto dims = dims_of(outputs[0].shape);
  const std::vector<double>& values = outputs[0].values;
  REEF_REQUIRE(dims.size() == 2 || dims.size() == 3, "output '{}' {} is no map of classes", outputs[0].name,
               outputs[0].shape.to_string());
  const bool channels_first = dims.size() == 3 && dims[0] < dims[1] && dims[0] < dims[2];
  const std::int64_t channels = dims.size() == 2 ? 0 : channels_first ? dims[0] : dims[2];
  Findings findings;
  PlaceMap& map = findings.classes;
  map.height = static_cast<int>(channels_first ? dims[1] : dims[0]);
  map.width = static_cast<int>(channels_first ? dims[2] : dims[1]);
  const auto places = static_cast<std::int64_t>(map.width) * map.height;
  std::map<std::int32_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < places; ++i) {
    const auto score = [&](std::int64_t c) {
      return values[reef::at(channels_first ? c * places + i : i * channels + c)];
    };
    std::int32_t label = 0;
    if (channels == 0) {
      label = static_cast<std::int32_t>(std::clamp(values[reef::at(i)], 0.0, 65535.0));
    } else if (channels == 1) {
      label = score(0) > 0.5 ? 1 : 0;
    } else {
      for (std::int32_t c = 1; c < channels; ++c) label = score(c) > score(label) ? c : label;
    }
    map.values.push_back(label);
    ++counts[label];
  }
  for (const auto& [label, count] : counts) {
    findings.segments.push_back({label, static_cast<double>(count) / static_cast<double>(places)});
  }
  std::stable_sort(findings.segments.begin(), findings.segments.end(),
                   [](const Segment& a, const Segment& b) { return a.share > b.share; });
  return findings;
}

}  // namespace

bool finds_places(const Task& task) {
  return task.kind == TaskKind::kDetector || task.kind == TaskKind::kSegmenter || task.kind == TaskKind::kPose;
}

Result<Findings> findings_of(const Task& task, std::span<const TensorValues> outputs, const FindingOptions& options) {
  REEF_REQUIRE(!outputs.empty() && finds_places(task), "the model finds no places in a picture");
  Result<Findings> findings = task.kind == TaskKind::kDetector    ? find_things(task, outputs, options)
                              : task.kind == TaskKind::kSegmenter ? find_segments(outputs)
                              : task.family == "movenet"          ? find_movenet(outputs, options)
                                                                  : find_posenet(outputs, options);
  if (!findings.ok()) return findings;
  findings->task = task;
  findings->placement = options.placement;
  return findings;
}

}  // namespace reef::evaluate
