// SPDX-License-Identifier: Apache-2.0
#include "evaluate/boxes.h"

#include <algorithm>
#include <optional>

namespace reef::evaluate {
namespace {

constexpr std::size_t kMostCandidates = 5000, kMostDetections = 300;

// Sizes without the leading 1 of the batch.
std::vector<std::int64_t> dims_of(const TensorValues& tensor) {
  std::vector<std::int64_t> dims(tensor.shape.begin(), tensor.shape.end());
  if (dims.size() > 1 && dims[0] == 1) dims.erase(dims.begin());
  return dims;
}

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

// One output that was given out in parts, each with its own scale (reef quantize splits such outputs), put together again:
// [n, c1], [n, c2] ... along channels, or [c1, n], [c2, n] ... one behind the other. Nothing: they are not such parts.
std::optional<TensorValues> joined(std::span<const TensorValues> outputs) {
  if (outputs.size() < 2) return std::nullopt;
  std::vector<std::vector<std::int64_t>> dims;
  for (const TensorValues& output : outputs) {
    dims.push_back(dims_of(output));
    if (dims.back().size() != 2) return std::nullopt;
  }
  const auto all_have = [&](std::size_t axis) {
    return std::all_of(dims.begin(), dims.end(), [&](const auto& d) { return d[axis] == dims[0][axis]; });
  };
  const bool by_rows = all_have(0);
  if (!by_rows && !all_have(1)) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& d : dims) sum += d[by_rows ? 1 : 0];
  const std::int64_t same = dims[0][by_rows ? 0 : 1];
  TensorValues whole{outputs[0].name, {}, {}};
  whole.shape = by_rows ? ir::Shape{1, static_cast<std::int32_t>(same), static_cast<std::int32_t>(sum)}
                        : ir::Shape{1, static_cast<std::int32_t>(sum), static_cast<std::int32_t>(same)};
  for (std::int64_t row = 0; row < (by_rows ? same : 1); ++row) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto count =
          by_rows ? static_cast<std::ptrdiff_t>(dims[i][1]) : static_cast<std::ptrdiff_t>(outputs[i].values.size());
      const auto from = outputs[i].values.begin() + static_cast<std::ptrdiff_t>(row) * count;
      whole.values.insert(whole.values.end(), from, from + count);
    }
  }
  return whole;
}

struct YoloForm {
  std::int64_t boxes = 0, channels = 0;
  bool channels_first = false, has_objectness = false;
};

Result<YoloForm> yolo_form(const TensorValues& output, const std::string& kind) {
  const auto dims = dims_of(output);
  REEF_REQUIRE(dims.size() == 2 && dims[0] > 0 && dims[1] > 0,
               "output '{}' is {}; a detector's is [1, n, 5 + classes] (yolo5), [1, 4 + classes, n] (yolo8) or boxes, "
               "classes and scores (ssd)",
               output.name, output.shape.to_string());
  YoloForm form;
  form.channels_first = dims[0] < dims[1];
  form.boxes = form.channels_first ? dims[1] : dims[0];
  form.channels = form.channels_first ? dims[0] : dims[1];
  form.has_objectness = kind == "auto" ? !form.channels_first : kind == "yolo5";
  REEF_REQUIRE(form.channels > (form.has_objectness ? 5 : 4), "output '{}' {} has no room for classes", output.name,
               output.shape.to_string());
  return form;
}

Result<std::vector<Detection>> decode_yolo(const TensorValues& output, const DetectorOptions& options) {
  REEF_ASSIGN_OR_RETURN(const YoloForm form, yolo_form(output, options.kind));
  const auto value = [&](std::int64_t box, std::int64_t channel) {
    return output.values[static_cast<std::size_t>(form.channels_first ? channel * form.boxes + box
                                                                      : box * form.channels + channel)];
  };
  double centre = 0;
  for (std::int64_t i = 0; i < form.boxes; ++i) centre += (value(i, 0) + value(i, 1)) / 2;
  const bool are_pixels = centre / static_cast<double>(form.boxes) > 1.5;
  const double wide = are_pixels ? options.input_width : 1, high = are_pixels ? options.input_height : 1;
  std::vector<Detection> detections;
  const std::int64_t first_class = form.has_objectness ? 5 : 4;
  for (std::int64_t i = 0; i < form.boxes; ++i) {
    std::int64_t best = first_class;
    for (std::int64_t c = first_class + 1; c < form.channels; ++c) best = value(i, c) > value(i, best) ? c : best;
    const double score = value(i, best) * (form.has_objectness ? value(i, 4) : 1);
    if (!(score > options.score_threshold)) continue;
    const double cx = value(i, 0) / wide, cy = value(i, 1) / high, w = value(i, 2) / wide, h = value(i, 3) / high;
    detections.push_back(
        {{cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2}, static_cast<int>(best - first_class), score});
  }
  return suppressed(std::move(detections), options.nms_iou, kMostDetections);
}

}  // namespace

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
  const std::optional<TensorValues> whole = joined(outputs);
  const bool may_be_ssd = options.kind == "auto" && !whole && looks_like_ssd(outputs);
  if (options.kind == "ssd" || may_be_ssd) return decode_ssd(outputs, options);
  REEF_REQUIRE(options.kind == "auto" || options.kind == "yolo5" || options.kind == "yolo8",
               "there is no detector '{}'; there are ssd, yolo5, yolo8", options.kind);
  return decode_yolo(whole ? *whole : outputs[0], options);
}

}  // namespace reef::evaluate
