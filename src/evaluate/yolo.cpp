// SPDX-License-Identifier: Apache-2.0
#include "evaluate/yolo.h"

#include <algorithm>
#include <cmath>

#include "evaluate/yolo_heads.h"

namespace reef::evaluate {
namespace {

using Dims = std::vector<std::int64_t>;

// Parts of one output, [n, c1], [n, c2] ... along channels, or [c1, n], [c2, n] ... one behind the other, put together
// again. Nothing: they are not such parts.
std::optional<TensorValues> joined(std::span<const TensorValues> outputs) {
  if (outputs.size() < 2) return std::nullopt;
  std::vector<Dims> dims;
  for (const TensorValues& output : outputs) {
    dims.push_back(dims_of(output));
    if (dims.back().size() != 2) return std::nullopt;
  }
  const auto all_have = [&](std::size_t axis) {
    return std::all_of(dims.begin(), dims.end(), [&](const auto& d) { return d[axis] == dims[0][axis]; });
  };
  // Boxes and scores of four classes have one shape: the shorter axis holds the channels.
  const bool by_rows = all_have(0) && !(all_have(1) && dims[0][0] < dims[0][1]);
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

// What stands in the columns of a box.
struct Form {
  std::int64_t boxes = 0, channels = 0;
  bool channels_first = false, has_objectness = false;
  bool is_final = false;  // corners, score, class
  std::int64_t classes = 0, mask_factors = 0, keypoints = 0, keypoint_numbers = 3;
  std::int64_t first_class() const { return has_objectness ? 5 : 4; }
  std::int64_t first_extra() const { return is_final ? 6 : first_class() + classes; }
};

class Rows {
 public:
  Rows(const TensorValues& output, const Form& form) : output_(output), form_(form) {}
  double at(std::int64_t box, std::int64_t channel) const {
    const std::int64_t index = form_.channels_first ? channel * form_.boxes + box : box * form_.channels + channel;
    return output_.values[reef::at(index)];
  }
  double largest(std::int64_t channel) const {
    double value = at(0, channel);
    for (std::int64_t i = 1; i < form_.boxes; ++i) value = std::max(value, at(i, channel));
    return value;
  }

 private:
  const TensorValues& output_;
  const Form& form_;
};

// Corners, a score, the number of a class: few rows, and numbers that can be nothing else.
bool holds_final_boxes(const TensorValues& output, const Form& form, const DetectorOptions& options) {
  constexpr std::int64_t kMostFinal = 1000;
  if (form.channels_first || form.channels < 6 || form.boxes > kMostFinal) return false;
  if (is_number_of_boxes(form.boxes, options.input_width, options.input_height)) return false;
  const Rows rows(output, form);
  for (std::int64_t i = 0; i < form.boxes; ++i) {
    const double label = rows.at(i, 5), score = rows.at(i, 4);
    // A quantized class number is near an integer, and empty rows are zeros.
    if (std::abs(label - std::round(label)) > 0.25 || label < -0.5 || score < -0.05 || score > 1.05) return false;
    if (rows.at(i, 2) < rows.at(i, 0) || rows.at(i, 3) < rows.at(i, 1)) return false;
  }
  return true;
}

// What is neither box nor class: factors of masks where there are prototypes, keypoints where the numbers behind the
// fifth column are coordinates.
void find_extras(const TensorValues& output, const DetectorOptions& options, std::int64_t mask_channels, Form& form) {
  const std::int64_t behind_box = form.channels - form.first_class();
  if (options.classes > 0 && options.classes <= behind_box) {
    form.classes = options.classes;
  } else {
    form.classes = std::max<std::int64_t>(1, behind_box - mask_channels);
  }
  const std::int64_t extra = behind_box - form.classes;
  if (mask_channels > 0 && extra == mask_channels) {
    form.mask_factors = mask_channels;
    return;
  }
  if (options.keypoints > 0) {
    form.keypoints = options.keypoints;
    form.keypoint_numbers = options.keypoint_numbers;
    form.classes = std::max<std::int64_t>(1, behind_box - form.keypoints * form.keypoint_numbers);
    return;
  }
  const std::int64_t behind_one = behind_box - 1;
  constexpr std::int64_t kFewestKeypoints = 4;
  if (options.classes > 1 || mask_channels > 0 || behind_one % 3 != 0 || behind_one / 3 < kFewestKeypoints) return;
  if (Rows(output, form).largest(form.first_class() + 1) > 1.5) {  // no probability
    form.classes = 1;
    form.keypoints = behind_one / 3;
  }
}

Result<Form> form_of(const TensorValues& output, const DetectorOptions& options, std::int64_t mask_channels) {
  const auto dims = dims_of(output);
  REEF_REQUIRE(dims.size() == 2 && dims[0] > 0 && dims[1] > 0,
               "output '{}' is {}; a detector's is [1, n, 5 + classes] (yolo5), [1, 4 + classes, n] (yolo8) or boxes, "
               "classes and scores (ssd)",
               output.name, output.shape.to_string());
  Form form;
  form.channels_first = dims[0] < dims[1];
  form.boxes = form.channels_first ? dims[1] : dims[0];
  form.channels = form.channels_first ? dims[0] : dims[1];
  form.is_final = options.kind == "auto" && holds_final_boxes(output, form, options);
  if (form.is_final) {
    form.mask_factors = form.channels - 6 == mask_channels ? mask_channels : 0;
    return form;
  }
  form.has_objectness = options.kind == "auto" ? !form.channels_first : options.kind == "yolo5";
  // A known number of classes says whether there is a column before them.
  if (options.kind == "auto" && options.classes > 0 && form.channels - mask_channels == 4 + options.classes) {
    form.has_objectness = false;
  }
  REEF_REQUIRE(form.channels > form.first_class(), "output '{}' {} has no room for classes", output.name,
               output.shape.to_string());
  find_extras(output, options, mask_channels, form);
  return form;
}

Detection detection_of(const Rows& rows, const Form& form, std::int64_t i, double wide, double high) {
  Detection found;
  const double a = rows.at(i, 0) / wide, b = rows.at(i, 1) / high, c = rows.at(i, 2) / wide, d = rows.at(i, 3) / high;
  if (form.is_final) {
    found = {{a, b, c, d}, static_cast<int>(std::lround(rows.at(i, 5))), rows.at(i, 4)};
  } else {
    std::int64_t best = form.first_class();
    for (std::int64_t k = best + 1; k < form.first_extra(); ++k) best = rows.at(i, k) > rows.at(i, best) ? k : best;
    const double score = rows.at(i, best) * (form.has_objectness ? rows.at(i, 4) : 1);
    found = {{a - c / 2, b - d / 2, a + c / 2, b + d / 2}, static_cast<int>(best - form.first_class()), score};
  }
  return found;
}

void add_extras(const Rows& rows, const Form& form, std::int64_t i, double wide, double high, Detection& found) {
  const std::int64_t first = form.first_extra();
  for (std::int64_t k = 0; k < form.mask_factors; ++k) found.mask_factors.push_back(rows.at(i, first + k));
  for (std::int64_t k = 0; k < form.keypoints; ++k) {
    const std::int64_t at = first + k * form.keypoint_numbers;
    if (at + 2 > form.channels) break;
    const bool has_score = form.keypoint_numbers > 2 && at + 2 < form.channels;
    found.keypoints.push_back({rows.at(i, at) / wide, rows.at(i, at + 1) / high, has_score ? rows.at(i, at + 2) : 1});
  }
}

Result<std::vector<Detection>> decode_rows(const TensorValues& output, const DetectorOptions& options,
                                           std::int64_t mask_channels) {
  REEF_ASSIGN_OR_RETURN(const Form form, form_of(output, options, mask_channels));
  const Rows rows(output, form);
  double centre = 0;
  for (std::int64_t i = 0; i < form.boxes; ++i) centre += (rows.at(i, 0) + rows.at(i, 1)) / 2;
  // Final boxes end in empty rows, whose zeros would hide pixels in the mean.
  const bool are_pixels =
      form.is_final ? std::max(rows.largest(2), rows.largest(3)) > 1.5 : centre / static_cast<double>(form.boxes) > 1.5;
  const double wide = are_pixels ? options.input_width : 1, high = are_pixels ? options.input_height : 1;
  std::vector<Detection> detections;
  for (std::int64_t i = 0; i < form.boxes; ++i) {
    Detection found = detection_of(rows, form, i, wide, high);
    if (!(found.score > options.score_threshold)) continue;
    add_extras(rows, form, i, wide, high, found);
    detections.push_back(std::move(found));
  }
  // Final boxes are in order and do not overlap; that costs nothing to check.
  return suppressed(std::move(detections), options.nms_iou, kMostDetections);
}

bool is_map(const TensorValues& output) {
  const Dims dims = dims_of(output);
  return dims.size() == 3 && std::min({dims[0], dims[1], dims[2]}) > 0;
}

}  // namespace

bool is_number_of_boxes(std::int64_t n, double input_width, double input_height) {
  constexpr int kFewestStride = 4, kFineStride = 8, kCoarseStride = 16, kMostStride = 64;
  for (int first = kFewestStride; first <= kCoarseStride; first *= 2) {
    std::int64_t cells = 0;
    for (int stride = first; stride <= kMostStride; stride *= 2) {
      cells += static_cast<std::int64_t>(std::ceil(input_width / stride)) *
               static_cast<std::int64_t>(std::ceil(input_height / stride));
      // A coarse grid alone is no detector, and 3 x 100 cells are also 300 final boxes.
      const bool is_enough = first <= kFineStride || stride > first;
      if (is_enough && (n == cells || n == 3 * cells)) return true;
    }
  }
  return false;
}

bool are_yolo_parts(std::span<const TensorValues> outputs) { return joined(outputs).has_value(); }

std::optional<Prototypes> prototypes(std::span<const TensorValues> outputs) {
  const auto is_other = [](const TensorValues& output) { return !is_map(output); };
  if (outputs.size() < 2 || std::count_if(outputs.begin(), outputs.end(), is_map) != 1) return std::nullopt;
  if (std::none_of(outputs.begin(), outputs.end(), is_other)) return std::nullopt;
  const TensorValues& map = *std::find_if(outputs.begin(), outputs.end(), is_map);
  const Dims dims = dims_of(map);
  const bool channels_first = dims[0] < dims[1] && dims[0] < dims[2];
  if (!channels_first) return Prototypes{dims[0], dims[1], dims[2], map.values};
  Prototypes result{dims[1], dims[2], dims[0], std::vector<double>(map.values.size())};
  const std::int64_t cells = dims[1] * dims[2];
  for (std::int64_t c = 0; c < dims[0]; ++c) {
    for (std::int64_t i = 0; i < cells; ++i) {
      result.values[reef::at(i * dims[0] + c)] = map.values[reef::at(c * cells + i)];
    }
  }
  return result;
}

Result<std::vector<Detection>> decode_yolo(std::span<const TensorValues> outputs, const DetectorOptions& options) {
  if (options.kind == "auto") {
    REEF_ASSIGN_OR_RETURN(std::optional<HeadDetections> raw, decode_raw_heads(outputs, options));
    if (raw) return suppressed(std::move(raw->detections), options.nms_iou, kMostDetections);
  }
  std::vector<TensorValues> rows;
  std::int64_t mask_channels = 0;
  if (const auto found = prototypes(outputs)) {
    mask_channels = found->channels;
    std::copy_if(outputs.begin(), outputs.end(), std::back_inserter(rows), [](const auto& o) { return !is_map(o); });
    outputs = rows;
  }
  const std::optional<TensorValues> whole = joined(outputs);
  return decode_rows(whole ? *whole : outputs[0], options, mask_channels);
}

}  // namespace reef::evaluate
