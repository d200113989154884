// SPDX-License-Identifier: Apache-2.0
// mAP at IoU 0.5: for every class the area under precision over recall, precision made falling (as in VOC since 2010
// and COCO, but for COCO's 101 points), then the mean over classes that occur in the truth.
//
// Detections of all pictures, highest score first, each take the box of their class and picture that they overlap most
// among those not yet taken; an overlap of 0.5 makes them right. Of equal scores the earlier sample comes first.
#include <algorithm>
#include <map>

#include "data/picture.h"
#include "data/subset.h"
#include "evaluate/box_truth.h"
#include "evaluate/boxes.h"
#include "evaluate/kept_numbers.h"
#include "evaluate/metric.h"

namespace reef::evaluate {
namespace {

constexpr double kIou = 0.5;

// A detection of a picture, already judged: whether it is right does not depend on other pictures.
struct Judged {
  int label = 0;
  double score = 0;
  bool is_right = false;
};

struct Picture {
  std::vector<Judged> detections;
  std::map<int, int> things;  // class -> how many there are
};

// Area under the curve of one class's detections, highest score first.
double area(const std::vector<Judged>& detections, int things) {
  std::vector<double> precision, recall;
  double right = 0;
  for (std::size_t i = 0; i < detections.size(); ++i) {
    right += detections[i].is_right ? 1 : 0;
    precision.push_back(right / static_cast<double>(i + 1));
    recall.push_back(right / things);
  }
  for (std::size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < precision.size(); ++i) {
    sum += (recall[i] - before) * precision[i];
    before = recall[i];
  }
  return sum;
}

class Map50 : public Metric {
 public:
  Map50(const MetricOptions& options, const BoxForm& form) : options_(options), form_(form) {
    detector_.kind = options.detector;
    detector_.score_threshold = options.score_threshold;
    detector_.nms_iou = options.nms_iou;
    detector_.anchors = options.anchors;
    if (const auto layout = data::picture_layout(options.input, options.preprocess.layout); layout.ok()) {
      detector_.input_width = layout->width;
      detector_.input_height = layout->height;
    }
  }

  void start(std::int64_t samples) override { pictures_.assign(static_cast<std::size_t>(samples), {}); }

  Status add(std::int64_t sample, const Answer& answer) override {
    std::span<const TensorValues> outputs = answer.outputs;
    if (options_.output > 0) {
      REEF_REQUIRE(static_cast<std::size_t>(options_.output) < outputs.size(), "the model has no output {}",
                   options_.output);
      outputs = outputs.subspan(static_cast<std::size_t>(options_.output), 1);
    }
    REEF_ASSIGN_OR_RETURN(const std::vector<Detection> detections, decode_detections(outputs, detector_));
    REEF_ASSIGN_OR_RETURN(std::vector<LabelledBox> things, boxes_of(answer.truth, form_, answer.picture_size));
    for (LabelledBox& thing : things) thing.box = placed(thing.box, answer.placement);
    Picture& picture = pictures_[at(sample)];
    for (const LabelledBox& thing : things) ++picture.things[thing.label + options_.label_offset];
    std::vector<char> is_taken(things.size(), 0);
    for (const Detection& detection : detections) {
      std::size_t best = things.size();
      double overlap = 0;
      for (std::size_t i = 0; i < things.size(); ++i) {
        if (is_taken[i] != 0 || things[i].label + options_.label_offset != detection.label) continue;
        const double shared = iou(detection.box, things[i].box);
        if (shared > overlap) {
          overlap = shared;
          best = i;
        }
      }
      const bool is_right = overlap >= kIou;
      if (is_right) is_taken[best] = 1;
      picture.detections.push_back({detection.label, detection.score, is_right});
    }
    return ok_status();
  }

  Result<Figure> finish() const override {
    std::map<int, double> by_class;
    const auto count = static_cast<std::int64_t>(pictures_.size());
    Figure figure{"map50", mean_of(data::in_order(count), &by_class), 0, "", {}};
    REEF_REQUIRE(!by_class.empty(), "the truth has no boxes");
    figure.standard_error =
        bootstrap_error(count, [&](std::span<const std::int64_t> drawn) { return mean_of(drawn, nullptr); });
    for (const auto& [label, value] : by_class) figure.details.emplace_back(fmt::format("class {}", label), value);
    return figure;
  }

  nlohmann::json kept(std::int64_t sample) const override {
    const Picture& picture = pictures_[at(sample)];
    nlohmann::json things = nlohmann::json::array(), found = nlohmann::json::array();
    for (const auto& [label, count] : picture.things) things.push_back({label, count});
    for (const Judged& one : picture.detections) found.push_back({one.label, exact(one.score), one.is_right ? 1 : 0});
    return {{"things", things}, {"found", found}};
  }

  Status restore(std::int64_t sample, const nlohmann::json& kept) override {
    REEF_REQUIRE(kept.is_object() && kept.contains("things") && kept["things"].is_array() && kept.contains("found") &&
                     kept["found"].is_array(),
                 "'{}' says nothing of boxes", kept.dump());
    Picture& picture = pictures_[at(sample)];
    picture = {};
    for (const nlohmann::json& row : kept["things"]) {
      REEF_ASSIGN_OR_RETURN(const std::vector<double> thing, exact_row(row, 2));
      picture.things[static_cast<int>(thing[0])] = static_cast<int>(thing[1]);
    }
    for (const nlohmann::json& row : kept["found"]) {
      REEF_ASSIGN_OR_RETURN(const std::vector<double> found, exact_row(row, 3));
      picture.detections.push_back({static_cast<int>(found[0]), found[1], found[2] != 0});
    }
    return ok_status();
  }

 private:
  static Box placed(const Box& box, const data::Placement& p) {
    return {box.x0 * p.x_scale + p.x_offset, box.y0 * p.y_scale + p.y_offset, box.x1 * p.x_scale + p.x_offset,
            box.y1 * p.y_scale + p.y_offset};
  }

  double mean_of(std::span<const std::int64_t> samples, std::map<int, double>* by_class) const {
    std::map<int, int> things;
    std::map<int, std::vector<Judged>> detections;
    for (const std::int64_t sample : samples) {
      const Picture& picture = pictures_[at(sample)];
      for (const auto& [label, count] : picture.things) things[label] += count;
      for (const Judged& judged : picture.detections) detections[judged.label].push_back(judged);
    }
    double sum = 0;
    for (const auto& [label, count] : things) {
      std::vector<Judged>& ranked = detections[label];
      std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
      const double value = area(ranked, count);
      sum += value;
      if (by_class != nullptr) (*by_class)[label] = value;
    }
    return things.empty() ? 0 : sum / static_cast<double>(things.size());
  }

  MetricOptions options_;
  BoxForm form_;
  DetectorOptions detector_;
  std::vector<Picture> pictures_;
};

}  // namespace

std::unique_ptr<Metric> make_map50(const MetricOptions& options, const BoxForm& form) {
  return std::make_unique<Map50>(options, form);
}

}  // namespace reef::evaluate
