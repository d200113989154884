// SPDX-License-Identifier: Apache-2.0
// TFLite_Detection_PostProcess: turns what an SSD-style detector computes into a short list of boxes, classes, scores
// and their number.
//
// Boxes are decoded relative to their anchors, then those that overlap a better one are dropped. The fast way does that
// once, with each box's best class; the regular way does it for every class and keeps the best of all classes.
// Places behind the last detection are zero. (TFLite leaves them as they are in the fast way.)
// int8 inputs, which TFLite's own kernel does not take, are read like uint8 ones.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/detection/postprocess.h"
#include "ops/checks.h"
#include "ops/flex_options.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::Box;
using kernels::CenteredBox;

constexpr AttributeDoc kDetectionPostprocessAttributes[] = {
    {"max_detections", "most boxes to report"},
    {"max_classes_per_detection", "classes reported for each box, the fast way"},
    {"detections_per_class", "most boxes kept of each class, the regular way; 100 if absent"},
    {"use_regular_nms", "suppress overlaps in each class by itself"},
    {"nms_score_threshold", "lower scores are dropped"},
    {"nms_iou_threshold", "overlap (intersection over union) from which the lower score is dropped"},
    {"num_classes", "number of classes, without background"},
    {"y_scale, x_scale, h_scale, w_scale", "what box encodings are divided by"}};

constexpr int kCoordinates = 4;
constexpr std::int32_t kDefaultDetectionsPerClass = 100;

struct DetectionPostprocessOptions {
  std::int32_t max_detections = 0;
  std::int32_t max_classes_per_detection = 0;
  std::int32_t detections_per_class = 0;
  std::int32_t num_classes = 0;
  bool use_regular_nms = false;
  float score_threshold = 0;
  float iou_threshold = 0;
  CenteredBox scales;
};

Status check_options(const DetectionPostprocessOptions& options) {
  REEF_REQUIRE(options.max_detections >= 1, "max_detections is {}; it must be at least 1", options.max_detections);
  REEF_REQUIRE(options.max_classes_per_detection >= 1, "max_classes_per_detection is {}; it must be at least 1",
               options.max_classes_per_detection);
  REEF_REQUIRE(options.detections_per_class >= 1 || !options.use_regular_nms,
               "detections_per_class is {}; it must be at least 1", options.detections_per_class);
  REEF_REQUIRE(options.num_classes >= 1, "num_classes is {}; it must be at least 1", options.num_classes);
  REEF_REQUIRE(options.iou_threshold > 0 && options.iou_threshold <= 1, "nms_iou_threshold is {}; it must be in (0, 1]",
               options.iou_threshold);
  return ok_status();
}

Result<DetectionPostprocessOptions> detection_postprocess_read_options(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const FlexOptions map, FlexOptions::parse(ctx.op().custom_options));
  DetectionPostprocessOptions options;
  REEF_ASSIGN_OR_RETURN(options.max_detections, map.get_int("max_detections"));
  REEF_ASSIGN_OR_RETURN(options.max_classes_per_detection, map.get_int("max_classes_per_detection"));
  REEF_ASSIGN_OR_RETURN(options.detections_per_class, map.get_int("detections_per_class", kDefaultDetectionsPerClass));
  REEF_ASSIGN_OR_RETURN(options.num_classes, map.get_int("num_classes"));
  options.use_regular_nms = map.get_bool("use_regular_nms");
  REEF_ASSIGN_OR_RETURN(options.score_threshold, map.get_float("nms_score_threshold"));
  REEF_ASSIGN_OR_RETURN(options.iou_threshold, map.get_float("nms_iou_threshold"));
  REEF_ASSIGN_OR_RETURN(options.scales.y, map.get_float("y_scale"));
  REEF_ASSIGN_OR_RETURN(options.scales.x, map.get_float("x_scale"));
  REEF_ASSIGN_OR_RETURN(options.scales.height, map.get_float("h_scale"));
  REEF_ASSIGN_OR_RETURN(options.scales.width, map.get_float("w_scale"));
  REEF_RETURN_IF_ERROR(check_options(options));
  return options;
}

Status detection_postprocess_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const DetectionPostprocessOptions options, detection_postprocess_read_options(ctx));
  const std::int64_t places = std::int64_t{options.max_detections} * options.max_classes_per_detection;
  REEF_REQUIRE(places <= std::numeric_limits<std::int32_t>::max() / kCoordinates,
               "{} detections of {} classes are too many", options.max_detections, options.max_classes_per_detection);
  const auto count = static_cast<std::int32_t>(places);
  ctx.set_output_shape(0, {1, count, kCoordinates});
  ctx.set_output_shape(1, {1, count});
  ctx.set_output_shape(2, {1, count});
  ctx.set_output_shape(3, {1});
  return ok_status();
}

// Elements of a float or 8-bit tensor as real numbers.
class Reals {
 public:
  Reals(const Tensor& tensor, QuantParams quantization) : data_(tensor.data), type_(tensor.type), q_(quantization) {}
  float operator[](std::int64_t i) const {
    if (type_ == DataType::kFloat32) return reinterpret_cast<const float*>(data_)[i];
    const int value = type_ == DataType::kUInt8 ? static_cast<int>(std::to_integer<std::uint8_t>(data_[i]))
                                                : reinterpret_cast<const std::int8_t*>(data_)[i];
    return static_cast<float>(value - q_.zero_point) * q_.scale;
  }
  CenteredBox box(std::int64_t first) const {
    return {(*this)[first], (*this)[first + 1], (*this)[first + 2], (*this)[first + 3]};
  }

 private:
  const std::byte* data_;
  DataType type_;
  QuantParams q_;
};

// The op while it runs.
struct Detector {
  RunContext& ctx;
  const DetectionPostprocessOptions& options;
  std::span<const Box> boxes;
  std::span<const float> scores;  // [boxes, row]
  std::int64_t row = 0;           // classes, with background if there is one, which comes first
  std::int64_t count = 0;         // detections so far

  std::int64_t background() const { return row - options.num_classes; }
  std::span<const float> class_scores(std::int32_t box) const {
    return scores.subspan(static_cast<std::size_t>(box * row + background()),
                          static_cast<std::size_t>(options.num_classes));
  }
  kernels::SuppressionLimits limits(std::int32_t max_boxes) const {
    return {options.score_threshold, options.iou_threshold, max_boxes};
  }
  void put(std::int64_t place, std::int32_t box, std::int32_t klass, float score) const {
    std::memcpy(ctx.output(0).data + place * static_cast<std::int64_t>(sizeof(Box)), &boxes[at(box)], sizeof(Box));
    ctx.output(1).mutable_values<float>()[at(place)] = static_cast<float>(klass);
    ctx.output(2).mutable_values<float>()[at(place)] = score;
  }
};

void detect_fast(Detector& detector) {
  const DetectionPostprocessOptions& options = detector.options;
  const auto classes = static_cast<std::size_t>(std::min(options.max_classes_per_detection, options.num_classes));
  std::vector<float> best(detector.boxes.size());
  detector.ctx.parallel_for(static_cast<std::int64_t>(best.size()), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::span<const float> scores = detector.class_scores(static_cast<std::int32_t>(i));
      const auto klass = static_cast<std::size_t>(kernels::largest_scores(scores, classes)[0]);
      best[at(i)] = scores[klass];
    }
  });
  const std::vector<std::int32_t> selected = kernels::suppress_overlaps(
      detector.ctx.environment()->threads(), detector.boxes, best, detector.limits(options.max_detections));
  for (const std::int32_t box : selected) {
    const std::span<const float> scores = detector.class_scores(box);
    std::int64_t place = detector.count++ * options.max_classes_per_detection;
    for (const std::int32_t klass : kernels::largest_scores(scores, classes)) {
      detector.put(place++, box, klass, scores[at(klass)]);
    }
  }
}

struct DetectionPostprocessCandidate {
  std::int32_t box = 0;
  std::int32_t klass = 0;
  float score = 0;
};

// The boxes that remain of one class.
std::vector<DetectionPostprocessCandidate> detect_class(const Detector& detector, std::int32_t klass,
                                                        std::int32_t max_boxes) {
  std::vector<float> scores(detector.boxes.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = detector.class_scores(static_cast<std::int32_t>(i))[at(klass)];
  }
  std::vector<DetectionPostprocessCandidate> candidates;
  for (const std::int32_t box : kernels::suppress_overlaps(detector.ctx.environment()->threads(), detector.boxes,
                                                           scores, detector.limits(max_boxes))) {
    candidates.push_back({box, klass, scores[at(box)]});
  }
  return candidates;
}

void detect_regular(Detector& detector) {
  constexpr std::int32_t kClassesAtOnce = 256;  // bounds memory; the result does not depend on it
  const DetectionPostprocessOptions& options = detector.options;
  const std::int32_t per_class = std::min(options.detections_per_class, options.max_detections);
  std::vector<DetectionPostprocessCandidate> best;
  for (std::int64_t first = 0; first < options.num_classes; first += kClassesAtOnce) {
    const std::int64_t count = std::min<std::int64_t>(kClassesAtOnce, options.num_classes - first);
    std::vector<std::vector<DetectionPostprocessCandidate>> by_class(static_cast<std::size_t>(count));
    detector.ctx.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        by_class[at(i)] = detect_class(detector, static_cast<std::int32_t>(first + i), per_class);
      }
    });
    // Class after class: of equal scores the earlier class comes first, and the list never grows beyond its limit.
    for (const std::vector<DetectionPostprocessCandidate>& candidates : by_class) {
      const auto middle = static_cast<std::ptrdiff_t>(best.size());
      best.insert(best.end(), candidates.begin(), candidates.end());
      std::inplace_merge(best.begin(), best.begin() + middle, best.end(),
                         [](const DetectionPostprocessCandidate& a, const DetectionPostprocessCandidate& b) {
                           return a.score > b.score;
                         });
      best.resize(std::min(best.size(), static_cast<std::size_t>(options.max_detections)));
    }
    if (detector.ctx.environment()->threads().past_deadline()) return;  // the interpreter reports it
  }
  for (const DetectionPostprocessCandidate& candidate : best) {
    detector.put(detector.count++, candidate.box, candidate.klass, candidate.score);
  }
}

struct Quantizations {
  QuantParams boxes, scores, anchors;
};

Status detection_postprocess_run(RunContext& ctx, const DetectionPostprocessOptions& options,
                                 const Quantizations& quantizations) {
  const std::int64_t box_count = ctx.input(0).shape[1], row = ctx.input(1).shape[2];
  const std::span<Box> boxes(reinterpret_cast<Box*>(ctx.scratch().data()), static_cast<std::size_t>(box_count));
  const Reals encoded(ctx.input(0), quantizations.boxes), anchors(ctx.input(2), quantizations.anchors);
  for (std::int64_t i = 0; i < box_count; ++i) {
    const Box box =
        kernels::decode_box(encoded.box(i * ctx.input(0).shape[2]), anchors.box(i * kCoordinates), options.scales);
    REEF_REQUIRE(!(box.y_min > box.y_max || box.x_min > box.x_max), "box {} has a negative height or width", i);
    boxes[at(i)] = box;
  }
  const std::int64_t score_count = box_count * row;
  const auto* scores = reinterpret_cast<const float*>(ctx.input(1).data);
  if (ctx.input(1).type != DataType::kFloat32) {
    auto* const dequantized = reinterpret_cast<float*>(boxes.data() + boxes.size());
    const Reals reals(ctx.input(1), quantizations.scores);
    for (std::int64_t i = 0; i < score_count; ++i) dequantized[i] = reals[i];
    scores = dequantized;
  }
  for (int i = 0; i < ctx.output_count(); ++i) std::memset(ctx.output(i).data, 0, ctx.output(i).bytes);
  Detector detector{ctx, options, boxes, {scores, static_cast<std::size_t>(score_count)}, row};
  options.use_regular_nms ? detect_regular(detector) : detect_fast(detector);
  ctx.output(3).mutable_values<float>()[0] = static_cast<float>(detector.count);
  return ok_status();
}

Status check_shapes(const PrepareContext& ctx, const DetectionPostprocessOptions& options) {
  const Tensor& boxes = ctx.input(0);
  const Tensor& scores = ctx.input(1);
  const Tensor& anchors = ctx.input(2);
  REEF_RETURN_IF_ERROR(require_rank(boxes, "boxes", 3, 3));
  REEF_RETURN_IF_ERROR(require_rank(scores, "scores", 3, 3));
  REEF_RETURN_IF_ERROR(require_rank(anchors, "anchors", 2, 2));
  REEF_REQUIRE(boxes.shape[0] == 1 && boxes.shape[2] >= kCoordinates,
               "boxes have shape {}; [1, number, 4 or more] is needed", boxes.shape.to_string());
  REEF_REQUIRE(scores.shape[0] == 1 && scores.shape[1] == boxes.shape[1] &&
                   (scores.shape[2] == options.num_classes || scores.shape[2] - 1 == options.num_classes),
               "scores have shape {}; [1, {}, {}], or one more for the background, is needed", scores.shape.to_string(),
               boxes.shape[1], options.num_classes);
  REEF_REQUIRE(anchors.shape[0] >= boxes.shape[1] && anchors.shape[1] == kCoordinates,
               "anchors have shape {}; [{}, 4] is needed", anchors.shape.to_string(), boxes.shape[1]);
  return ok_status();
}

Result<QuantParams> quantization_of(const Tensor& tensor, std::string_view role) {
  REEF_RETURN_IF_ERROR(require_type(tensor, role, {DataType::kFloat32, DataType::kUInt8, DataType::kInt8}));
  if (tensor.type == DataType::kFloat32) return QuantParams{};
  return per_tensor_quantization(tensor, role);
}

Result<Kernel> detection_postprocess_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const DetectionPostprocessOptions options, detection_postprocess_read_options(ctx));
  REEF_RETURN_IF_ERROR(check_shapes(ctx, options));
  Quantizations quantizations;
  REEF_ASSIGN_OR_RETURN(quantizations.boxes, quantization_of(ctx.input(0), "boxes"));
  REEF_ASSIGN_OR_RETURN(quantizations.scores, quantization_of(ctx.input(1), "scores"));
  REEF_ASSIGN_OR_RETURN(quantizations.anchors, quantization_of(ctx.input(2), "anchors"));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(2)));
  for (int i = 0; i < ctx.output_count(); ++i) {
    REEF_RETURN_IF_ERROR(require_type(ctx.output(i), "output", {DataType::kFloat32}));
  }
  const bool dequantizes = ctx.input(1).type != DataType::kFloat32;
  ctx.request_scratch(ctx.input(0).shape[1] * static_cast<std::int64_t>(sizeof(Box)) +
                      (dequantizes ? ctx.input(1).elements() * static_cast<std::int64_t>(sizeof(float)) : 0));
  return Kernel([options, quantizations](RunContext& run_ctx) {
    return detection_postprocess_run(run_ctx, options, quantizations);
  });
}

}  // namespace

constinit const OpDef detection_postprocess_op =
    define({.name = name_of(Op::TFLite_Detection_PostProcess),
            .summary = "Decodes detected boxes and drops those that overlap better ones.",
            .inputs = {3, 3},
            .outputs = {4, 4},
            .attributes = kDetectionPostprocessAttributes,
            .types = "float32; uint8 and int8 inputs, dequantized",
            .is_custom = true,
            .infer = detection_postprocess_infer,
            .prepare = detection_postprocess_prepare,
            .chip = {.instead = "It belongs on the CPU: as the last op it costs little."}});

}  // namespace reef::ops
