// SPDX-License-Identifier: Apache-2.0
#include "evaluate/task.h"

#include <algorithm>

#include "data/picture.h"
#include "evaluate/boxes.h"
#include "evaluate/yolo.h"
#include "evaluate/yolo_heads.h"
#include "ir/op.h"

namespace reef::evaluate {
namespace {

using Dims = std::vector<std::int64_t>;

bool has_op(const ir::Model& model, Op type) {
  const auto& operators = model.subgraphs[0].operators;
  return std::any_of(operators.begin(), operators.end(), [&](const ir::Operator& op) { return op.type == type; });
}

// Boxes [n, 4], and a number for each of them in two others.
bool is_ssd(const std::vector<Dims>& outputs) {
  std::int64_t boxes = 0;
  for (const Dims& dims : outputs) {
    if (dims.size() == 2 && dims[1] == 4) boxes = dims[0];
  }
  const auto of_boxes =
      std::count_if(outputs.begin(), outputs.end(), [&](const Dims& d) { return d.size() == 1 && d[0] == boxes; });
  return boxes > 0 && of_boxes >= 2;
}

bool is_yolo(const std::vector<Dims>& outputs, PictureSize input, std::size_t classes) {
  constexpr std::int64_t kFewestChannels = 5, kMostFinal = 1000;
  DetectorOptions options;
  options.input_width = input.width;
  options.input_height = input.height;
  options.classes = static_cast<int>(classes);
  if (have_raw_head_shapes(outputs, options)) return true;
  std::int64_t channels = 0, boxes = 0, maps = 0;
  for (const Dims& dims : outputs) {
    if (dims.size() == 3) {
      ++maps;
      continue;
    }
    if (dims.size() != 2) return false;
    const std::int64_t n = std::max(dims[0], dims[1]);
    if (boxes != 0 && n != boxes) return false;
    boxes = n;
    channels += std::min(dims[0], dims[1]);
  }
  if (boxes == 0 || maps > 1 || channels < kFewestChannels) return false;
  const bool is_final = outputs.size() == 1 && outputs[0][1] == 6 && boxes <= kMostFinal;
  return is_final || is_number_of_boxes(boxes, input.width, input.height);
}

// A number, or one for each class, at every place of a picture.
Task map_task(const Dims& dims, PictureSize input) {
  constexpr std::int64_t kFewestPlaces = 8;
  const auto is_of_input = [&](std::int64_t height, std::int64_t width) {
    return std::min(height, width) >= kFewestPlaces && width * input.height == height * input.width;
  };
  if (dims.size() == 2 && is_of_input(dims[0], dims[1])) return {TaskKind::kSegmenter, ""};
  if (dims.size() != 3) return {};
  const bool is_last = is_of_input(dims[0], dims[1]), is_first = is_of_input(dims[1], dims[2]);
  if (!is_last && !is_first) return {};
  const std::int64_t channels = is_last ? dims[2] : dims[0], width = is_last ? dims[1] : dims[2];
  // Three numbers for each pixel, as many pixels as came in or more: colours.
  if (channels == 3 && static_cast<double>(width) >= input.width) return {TaskKind::kPicture, ""};
  return {TaskKind::kSegmenter, ""};
}

}  // namespace

PictureSize input_picture(const ir::Model& model) {
  if (model.subgraphs.empty() || model.subgraphs[0].inputs.empty()) return {};
  const auto layout = data::picture_layout(data::input_spec(model, 0));
  if (!layout.ok()) return {};
  return {static_cast<double>(layout->width), static_cast<double>(layout->height)};
}

Task task_of(const ir::Model& model, const std::vector<ir::Shape>& outputs, PictureSize input,
             const data::ModelCard& card) {
  std::vector<Dims> dims;
  for (const ir::Shape& shape : outputs) dims.push_back(dims_of(shape));
  if (dims.empty()) return {};
  if (has_op(model, Op::TFLite_Detection_PostProcess) || is_ssd(dims)) return {TaskKind::kDetector, "ssd"};
  if (has_op(model, Op::PosenetDecoderOp) && dims.size() >= 3) return {TaskKind::kPose, "posenet"};
  if (dims.size() == 1 && dims[0].size() == 3 && dims[0][0] == 1 && dims[0][2] == 3 && dims[0][1] >= 5) {
    return {TaskKind::kPose, "movenet"};
  }
  if (input.width > 0 && is_yolo(dims, input, card.names.size())) return {TaskKind::kDetector, "yolo"};
  if (card.task == "detect" || card.task == "segment" || card.task == "pose") return {TaskKind::kDetector, "yolo"};
  if (dims.size() == 1 && dims[0].size() == 1 && dims[0][0] >= 2) return {TaskKind::kClassifier, ""};
  return dims.size() == 1 && input.width > 0 ? map_task(dims[0], input) : Task();
}

Task task_of(const ir::Model& model) {
  if (model.subgraphs.empty()) return {};
  std::vector<ir::Shape> outputs;
  for (const std::int32_t tensor : model.subgraphs[0].outputs) {
    if (tensor < 0) return {};
    outputs.push_back(model.subgraphs[0].tensors[at(tensor)].shape);
  }
  return task_of(model, outputs, input_picture(model), data::stored_card(model));
}

}  // namespace reef::evaluate
