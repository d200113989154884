// SPDX-License-Identifier: Apache-2.0
#include "findings_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "console.h"
#include "data/picture.h"
#include "evaluate/drawing.h"
#include "evaluate/outputs.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

// The picture in the model's input, of the size that it has in this run.
Result<data::PictureLayout> layout_of(const cpu::Interpreter& interpreter, const data::Preprocess& preprocess) {
  const ops::Tensor& tensor = interpreter.input(0);
  data::InputSpec input;
  input.name = std::string(tensor.name);
  input.type = tensor.type;
  input.shape = tensor.shape;
  return data::picture_layout(input, preprocess.layout);
}

std::string quantity(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

Result<std::optional<FindingsReport>> FindingsReport::create(const FindingFlags& flags, const ir::Model& model,
                                                             const cpu::Interpreter& interpreter,
                                                             const std::string& picture,
                                                             const data::Preprocess& preprocess,
                                                             const std::vector<std::string>& names) {
  std::optional<FindingsReport> nothing;
  if (flags.raw || picture.empty()) return nothing;
  REEF_ASSIGN_OR_RETURN(const data::PictureLayout layout, layout_of(interpreter, preprocess));
  evaluate::FindingOptions how;
  how.score_threshold = flags.least_score;
  how.anchors = flags.anchors;
  how.input = {static_cast<double>(layout.width), static_cast<double>(layout.height)};
  how.card = data::stored_card(model);
  if (how.card.names.empty()) how.card.names = names;
  std::vector<ir::Shape> shapes;
  for (int i = 0; i < interpreter.output_count(); ++i) shapes.push_back(interpreter.output(i).shape);
  const evaluate::Task task = evaluate::task_of(model, shapes, how.input, how.card);
  if (!evaluate::finds_places(task)) return nothing;
  std::vector<evaluate::TensorValues> outputs;
  for (int i = 0; i < interpreter.output_count(); ++i) {
    REEF_ASSIGN_OR_RETURN(outputs.emplace_back(), evaluate::tensor_values(interpreter.output(i)));
  }
  FindingsReport report;
  REEF_ASSIGN_OR_RETURN(report.picture_, image::load(picture, 3));
  how.placement =
      data::placement_of(preprocess, report.picture_.width, report.picture_.height, layout.width, layout.height);
  REEF_ASSIGN_OR_RETURN(report.findings_, evaluate::findings_of(task, outputs, how));
  report.names_ = how.card.names;
  return std::optional<FindingsReport>(std::move(report));
}

std::vector<std::int64_t> FindingsReport::pixels_of(const evaluate::Box& box) const {
  return {std::lround(box.x0 * picture_.width), std::lround(box.y0 * picture_.height),
          std::lround(box.x1 * picture_.width), std::lround(box.y1 * picture_.height)};
}

void FindingsReport::print() const {
  const bool is_pose = findings_.task.kind == evaluate::TaskKind::kPose;
  if (findings_.task.kind == evaluate::TaskKind::kSegmenter) {
    print_text("segments, by their share of the picture:\n");
    for (const evaluate::Segment& segment : findings_.segments) {
      print_text("  {:<20} {:>5.1f} %\n", evaluate::class_name(segment.label, names_), 100 * segment.share);
    }
    return;
  }
  print_text("found {}{}\n", quantity(findings_.things.size(), is_pose ? "pose" : "thing"),
             findings_.things.empty() ? " (--min-score 0.1 shows less certain ones, --raw the numbers)"
                                      : ", boxes as x0 y0 x1 y1 in pixels of the picture:");
  for (const evaluate::Found& found : findings_.things) {
    const std::string name = is_pose ? "pose" : evaluate::class_name(found.what.label, names_);
    print_text("  {:<20} {:.2f}  [{}]", name, found.what.score, fmt::join(pixels_of(found.what.box), " "));
    if (!found.mask.values.empty()) {
      const auto places = std::count(found.mask.values.begin(), found.mask.values.end(), 1);
      print_text("  mask {:.1f} %",
                 100.0 * static_cast<double>(places) / static_cast<double>(found.mask.values.size()));
    }
    if (!found.what.keypoints.empty()) print_text("  {}", quantity(found.what.keypoints.size(), "keypoint"));
    print_text("\n");
  }
  if (findings_.has_assumed_anchors) {
    print_text(
        "The heads are raw, and no model file says which anchors they were trained with: these boxes assume "
        "YOLOv5's (--anchors gives others).\n");
  }
}

Json FindingsReport::json() const {
  Json json = {{"things", Json::array()}};
  for (const evaluate::Found& found : findings_.things) {
    Json& thing = json["things"].emplace_back(Json{{"class", found.what.label}, {"score", found.what.score}});
    if (found.what.label >= 0 && static_cast<std::size_t>(found.what.label) < names_.size()) {
      thing["label"] = names_[at(found.what.label)];
    }
    thing["box"] = pixels_of(found.what.box);
    if (!found.mask.values.empty()) {
      thing["mask"] = {{"width", found.mask.width},
                       {"height", found.mask.height},
                       {"places", std::count(found.mask.values.begin(), found.mask.values.end(), 1)}};
    }
    for (const evaluate::Keypoint& point : found.what.keypoints) {
      thing["keypoints"].push_back({point.x * picture_.width, point.y * picture_.height, point.score});
    }
  }
  if (findings_.has_assumed_anchors) json["anchors"] = "assumed";
  for (const evaluate::Segment& segment : findings_.segments) {
    Json entry = {{"class", segment.label}, {"share", segment.share}};
    if (static_cast<std::size_t>(segment.label) < names_.size()) {
      entry["label"] = names_[at(segment.label)];
    }
    json["segments"].push_back(std::move(entry));
  }
  return json;
}

int FindingsReport::enlargement() const {
  constexpr int kSmall = 320, kLegible = 480;  // pixels of the shorter side
  const int shorter = std::max(1, std::min(picture_.width, picture_.height));
  return shorter < kSmall ? (kLegible + shorter - 1) / shorter : 1;
}

Status FindingsReport::draw(const std::string& path, ResultFiles& results) const {
  image::Image picture = evaluate::enlarged(picture_, enlargement());
  evaluate::draw(findings_, names_, picture);
  REEF_ASSIGN_OR_RETURN(std::vector<std::uint8_t> file, image::encode_png(picture));
  results.add(path, std::move(file));
  return ok_status();
}

}  // namespace reef::app
