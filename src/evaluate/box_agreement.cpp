// SPDX-License-Identifier: Apache-2.0
#include "evaluate/box_agreement.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/model_card.h"
#include "data/subset.h"
#include "evaluate/task.h"

namespace reef::evaluate {
namespace {

using BoxesOfSamples = std::vector<std::vector<Detection>>;

DetectorOptions options_for(const ir::Model& model, double least_score) {
  const Task task = task_of(model);
  const PictureSize input = input_picture(model);
  const data::ModelCard card = data::stored_card(model);
  DetectorOptions options;
  options.kind = task.family == "ssd" ? "ssd" : "auto";
  options.score_threshold = least_score;
  options.input_width = input.width;
  options.input_height = input.height;
  options.classes = static_cast<int>(card.names.size());
  options.keypoints = card.keypoints;
  options.keypoint_numbers = std::max(card.keypoint_numbers, 2);
  return options;
}

Result<BoxesOfSamples> boxes_of_all(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                    const DetectorOptions& how, const RunnerOptions& options) {
  BoxesOfSamples boxes(static_cast<std::size_t>(source.size()));
  const auto run = run_samples(model, source, options, [&](std::int64_t sample, cpu::Interpreter& interpreter) {
    std::vector<TensorValues> outputs;
    for (int i = 0; i < interpreter.output_count(); ++i) {
      REEF_ASSIGN_OR_RETURN(outputs.emplace_back(), tensor_values(interpreter.output(i)));
    }
    REEF_ASSIGN_OR_RETURN(boxes[at(sample)], decode_detections(outputs, how));
    return ok_status();
  });
  if (!run.ok()) return run.status();
  return boxes;
}

// The place in `others` of the box that is most like this one and not taken; their number: there is none.
std::size_t partner_of(const Detection& box, const std::vector<Detection>& others, const std::vector<char>& is_taken) {
  constexpr double kHalf = 0.5;
  std::size_t best = others.size();
  double overlap = kHalf;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (is_taken[i] != 0 || others[i].label != box.label) continue;
    const double shared = iou(box.box, others[i].box);
    if (shared < overlap) continue;
    overlap = shared;
    best = i;
  }
  return best;
}

void compare_sample(const std::vector<Detection>& ours, const std::vector<Detection>& theirs, BoxAgreement& result) {
  std::vector<char> is_taken(theirs.size(), 0);
  for (const Detection& box : ours) {
    const std::size_t partner = partner_of(box, theirs, is_taken);
    const bool counts = box.score >= result.least_score;
    result.boxes += counts ? 1 : 0;
    if (partner == theirs.size()) continue;
    is_taken[partner] = 1;
    if (!counts) continue;
    ++result.kept;
    result.overlap += iou(box.box, theirs[partner].box);
    result.score_difference += std::abs(box.score - theirs[partner].score);
  }
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    result.added += is_taken[i] == 0 && theirs[i].score >= result.least_score ? 1 : 0;
  }
}

}  // namespace

Result<BoxAgreement> compare_boxes(const std::shared_ptr<const ir::Model>& float_model,
                                   const std::shared_ptr<const ir::Model>& other,
                                   const std::shared_ptr<const data::SampleSource>& source, std::int64_t most,
                                   const RunnerOptions& options) {
  BoxAgreement result;
  const data::Subset samples(source, data::in_order(std::min(source->size(), most)));
  const DetectorOptions how = options_for(*float_model, result.least_score / 2);
  REEF_ASSIGN_OR_RETURN(const BoxesOfSamples ours, boxes_of_all(float_model, samples, how, options));
  REEF_ASSIGN_OR_RETURN(const BoxesOfSamples theirs, boxes_of_all(other, samples, how, options));
  result.samples = samples.size();
  for (std::size_t i = 0; i < ours.size(); ++i) compare_sample(ours[i], theirs[i], result);
  if (result.kept > 0) {
    result.overlap /= static_cast<double>(result.kept);
    result.score_difference /= static_cast<double>(result.kept);
  }
  return result;
}

std::string describe(const BoxAgreement& agreement) {
  if (agreement.boxes == 0 && agreement.added == 0) {
    return fmt::format("neither model finds a box from score {} on in {} samples: are these typical pictures?",
                       agreement.least_score, agreement.samples);
  }
  std::string text = fmt::format("{} of {} boxes kept", agreement.kept, agreement.boxes);
  if (agreement.added > 0) text += fmt::format(", {} new", agreement.added);
  if (agreement.kept > 0) {
    text += fmt::format("; overlap {:.2f}, scores differ by {:.2f}", agreement.overlap, agreement.score_difference);
  }
  return text + fmt::format(" (measured, {} samples, score from {})", agreement.samples, agreement.least_score);
}

}  // namespace reef::evaluate
