// SPDX-License-Identifier: Apache-2.0
#include "evaluate/yolo_heads.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "evaluate/yolo_head_shapes.h"

namespace reef::evaluate {
namespace {

using Dims = std::vector<std::int64_t>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

using Outputs = std::span<const TensorValues>;

double value(Outputs outputs, const HeadMap& map, std::int64_t anchor, std::int64_t cell, std::int64_t channel) {
  return outputs[map.output].values[map.at(anchor, cell, channel)];
}

// Whether some number of these channels is no probability.
bool are_logits(Outputs outputs, const HeadMap& map, std::int64_t first_channel) {
  for (std::int64_t a = 0; a < map.anchors; ++a) {
    for (std::int64_t cell = 0; cell < map.cells(); ++cell) {
      for (std::int64_t c = first_channel; c < map.channels; ++c) {
        const double x = value(outputs, map, a, cell, c);
        if (x < -0.01 || x > 1.01) return true;
      }
    }
  }
  return false;
}

// In heads with anchors objectness is low nearly everywhere: on average lower than each number of the box beside it.
bool has_objectness(Outputs outputs, const Heads& heads) {
  for (const Heads::Stride& stride : heads.strides) {
    const HeadMap& map = stride.boxes;
    for (std::int64_t a = 0; a < map.anchors; ++a) {
      double sums[kAnchorNumbers] = {};
      for (std::int64_t cell = 0; cell < map.cells(); ++cell) {
        for (std::int64_t c = 0; c < kAnchorNumbers; ++c) sums[c] += value(outputs, map, a, cell, c);
      }
      if (*std::min_element(sums, sums + 4) <= sums[4]) return false;
    }
  }
  return true;
}

// Whether the centres of all boxes lie in their own cells or beside them, as those of decoded boxes do. Rows come
// anchor by anchor, or with the anchors of a cell side by side; centres are in pixels or fractions of the input.
bool follow_the_grid(Outputs outputs, const std::vector<HeadMap>& maps, bool are_pixels, bool anchors_inside,
                     const DetectorOptions& options) {
  constexpr double kMostCells = 1.5;  // 1, and what quantization adds
  constexpr double kNearlyAll = 0.95;
  std::int64_t near = 0, all = 0;
  for (const HeadMap& map : maps) {
    const double x_scale = static_cast<double>(map.width) / (are_pixels ? options.input_width : 1);
    const double y_scale = static_cast<double>(map.height) / (are_pixels ? options.input_height : 1);
    for (std::int64_t row = 0; row < map.anchors * map.cells(); ++row) {
      const std::int64_t cell = anchors_inside ? row / map.anchors : row % map.cells();
      const double x = value(outputs, map, 0, row, 0) * x_scale - static_cast<double>(cell % map.width) - 0.5;
      const double y = value(outputs, map, 0, row, 1) * y_scale - static_cast<double>(cell / map.width) - 0.5;
      near += std::abs(x) < kMostCells && std::abs(y) < kMostCells ? 1 : 0;
      ++all;
    }
  }
  return static_cast<double>(near) > kNearlyAll * static_cast<double>(all);
}

// Whether rows of anchors hold numbers from before the decoding: scores that are no probabilities, or centres that do
// not follow the grid. Rows of zeros, which some exporters leave where nothing was found, are decoded ones.
bool are_undecoded(Outputs outputs, const std::vector<HeadMap>& maps, const DetectorOptions& options) {
  std::int64_t zeros = 0, rows = 0;
  for (const HeadMap& map : maps) {
    if (are_logits(outputs, map, 4)) return true;
    for (std::int64_t row = 0; row < map.anchors * map.cells(); ++row) {
      zeros += value(outputs, map, 0, row, 2) == 0 && value(outputs, map, 0, row, 3) == 0 ? 1 : 0;
      ++rows;
    }
  }
  if (2 * zeros > rows) return false;
  for (const bool are_pixels : {false, true}) {
    for (const bool anchors_inside : {false, true}) {
      if (follow_the_grid(outputs, maps, are_pixels, anchors_inside, options)) return false;
    }
  }
  return true;
}

// Outputs with 64 and 4 numbers a cell are distributions and scores of 4 classes, or probabilities of 64 classes and
// decoded boxes.
bool are_decoded_pairs(Outputs outputs, const Heads& heads) {
  return std::all_of(heads.strides.begin(), heads.strides.end(), [&](const Heads::Stride& stride) {
    return stride.scores && stride.scores->channels == 4 && !are_logits(outputs, stride.boxes, 0);
  });
}

// The mean of a distribution over 0, 1 ... 15, given before its softmax.
double expected_bin(const double* bins) {
  const double most = *std::max_element(bins, bins + kBins);
  double sum = 0, weighted = 0;
  for (std::int64_t k = 0; k < kBins; ++k) {
    const double weight = std::exp(bins[k] - most);
    sum += weight;
    weighted += weight * static_cast<double>(k);
  }
  return weighted / sum;
}

// The best class of a cell and its number.
std::pair<std::int64_t, double> best_class(Outputs outputs, const HeadMap& map, std::int64_t anchor, std::int64_t cell,
                                           std::int64_t first_channel) {
  std::pair<std::int64_t, double> best{first_channel, value(outputs, map, anchor, cell, first_channel)};
  for (std::int64_t c = first_channel + 1; c < map.channels; ++c) {
    const double score = value(outputs, map, anchor, cell, c);
    if (score > best.second) best = {c, score};
  }
  return {best.first - first_channel, best.second};
}

void decode_distributions(Outputs outputs, const Heads::Stride& stride, bool has_logits, double least,
                          std::vector<Detection>& detections) {
  const HeadMap& boxes = stride.boxes;
  const HeadMap& scores = stride.scores ? *stride.scores : boxes;
  const auto wide = static_cast<double>(boxes.width), high = static_cast<double>(boxes.height);
  for (std::int64_t cell = 0; cell < boxes.cells(); ++cell) {
    const auto [label, number] = best_class(outputs, scores, 0, cell, stride.scores ? 0 : kBoxChannels);
    const double score = has_logits ? logistic(number) : number;
    if (!(score > least)) continue;
    double distances[4];
    for (std::int64_t side = 0; side < 4; ++side) {
      double bins[kBins];
      for (std::int64_t k = 0; k < kBins; ++k) bins[k] = value(outputs, boxes, 0, cell, side * kBins + k);
      distances[side] = expected_bin(bins);
    }
    const double x = static_cast<double>(cell % boxes.width) + 0.5, y = static_cast<double>(cell / boxes.width) + 0.5;
    detections.push_back(
        {{(x - distances[0]) / wide, (y - distances[1]) / high, (x + distances[2]) / wide, (y + distances[3]) / high},
         static_cast<int>(label),
         score});
  }
}

void decode_anchors(Outputs outputs, const HeadMap& map, const std::vector<std::pair<double, double>>& sizes,
                    bool has_logits, const DetectorOptions& options, std::vector<Detection>& detections) {
  const auto wide = static_cast<double>(map.width), high = static_cast<double>(map.height);
  const auto share = [&](double x) { return has_logits ? logistic(x) : x; };
  for (std::int64_t a = 0; a < map.anchors; ++a) {
    for (std::int64_t cell = 0; cell < map.cells(); ++cell) {
      const double objectness = share(value(outputs, map, a, cell, 4));
      if (!(objectness > options.score_threshold)) continue;
      const auto [label, number] = best_class(outputs, map, a, cell, kAnchorNumbers);
      const double score = objectness * share(number);
      if (!(score > options.score_threshold)) continue;
      const auto [anchor_width, anchor_height] = sizes[reef::at(a)];
      const auto number_of = [&](std::int64_t c) { return 2 * share(value(outputs, map, a, cell, c)); };
      const double x = (number_of(0) - 0.5 + static_cast<double>(cell % map.width)) / wide;
      const double y = (number_of(1) - 0.5 + static_cast<double>(cell / map.width)) / high;
      const double w = std::pow(number_of(2), 2) * anchor_width / options.input_width;
      const double h = std::pow(number_of(3), 2) * anchor_height / options.input_height;
      detections.push_back({{x - w / 2, y - h / 2, x + w / 2, y + h / 2}, static_cast<int>(label), score});
    }
  }
}

// Anchors of Ultralytics' published configurations: yolov5s.yaml, yolov5s6.yaml, yolov3-tiny.yaml.
Result<Anchors> usual_anchors(std::size_t strides) {
  switch (strides) {
    case 2:
      return parse_anchors("10,14,23,27,37,58/81,82,135,169,344,319");
    case 3:
      return parse_anchors("yolov5");
    case 4:
      return parse_anchors("19,27,44,40,38,94/96,68,86,152,180,137/140,301,303,264,238,542/436,615,739,380,925,792");
    default:
      return unsupported(
          "the detector's heads have {} strides, for which no usual anchors are known; give those that it was "
          "trained with: --anchors W,H,W,H,W,H/...",
          strides);
  }
}

Result<HeadDetections> decode_heads(Outputs outputs, const Heads& heads, const DetectorOptions& options) {
  const std::int64_t first = heads.kind == HeadKind::kAnchors ? 4 : kBoxChannels;
  bool has_logits = false;
  for (const Heads::Stride& stride : heads.strides) {
    has_logits =
        has_logits || are_logits(outputs, stride.scores ? *stride.scores : stride.boxes, stride.scores ? 0 : first);
  }
  HeadDetections result;
  if (heads.kind == HeadKind::kDistributions) {
    for (const Heads::Stride& stride : heads.strides) {
      decode_distributions(outputs, stride, has_logits, options.score_threshold, result.detections);
    }
    return result;
  }
  result.has_assumed_anchors = options.anchors.empty();
  REEF_ASSIGN_OR_RETURN(const Anchors anchors,
                        options.anchors.empty() ? usual_anchors(heads.strides.size()) : parse_anchors(options.anchors));
  REEF_REQUIRE(anchors.size() == heads.strides.size(), "--anchors: {} groups are given, but the heads have {} strides",
               anchors.size(), heads.strides.size());
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const HeadMap& map = heads.strides[i].boxes;
    REEF_REQUIRE(static_cast<std::int64_t>(anchors[i].size()) == map.anchors,
                 "--anchors: group {} has {} anchors, but the heads have {}", i + 1, anchors[i].size(), map.anchors);
    decode_anchors(outputs, map, anchors[i], has_logits, options, result.detections);
  }
  return result;
}

// Rows [n, 5 + classes] of anchors that nobody has decoded.
std::optional<Heads> undecoded_rows(Outputs outputs, const DetectorOptions& options) {
  if (outputs.size() != 1) return std::nullopt;
  const Dims dims = dims_of(outputs[0].shape);
  if (dims.size() != 2) return std::nullopt;
  const std::vector<HeadMap> maps = maps_of_rows(dims, anchors_of(options), options);
  if (maps.empty() || maps[0].channels <= kAnchorNumbers || !are_undecoded(outputs, maps, options)) {
    return std::nullopt;
  }
  Heads heads{HeadKind::kAnchors, {}};
  for (const HeadMap& map : maps) heads.strides.push_back({map, std::nullopt});
  return heads;
}

}  // namespace

Result<Anchors> parse_anchors(const std::string& text) {
  if (text == "yolov5") return parse_anchors("10,13,16,30,33,23/30,61,62,45,59,119/116,90,156,198,373,326");
  if (text == "yolov7") return parse_anchors("12,16,19,36,40,28/36,75,76,55,72,146/142,110,192,243,459,401");
  Anchors anchors(1);
  std::vector<double> numbers;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (at <= end) {
    double number = 0;
    const auto read = std::from_chars(at, end, number);
    REEF_REQUIRE(read.ec == std::errc() && number > 0 && std::isfinite(number) &&
                     (read.ptr == end || *read.ptr == ',' || *read.ptr == '/'),
                 "anchors '{}': expected yolov5, yolov7 or widths and heights in pixels, one group for each stride: "
                 "10,13,16,30,33,23/30,61,62,45,59,119/116,90,156,198,373,326",
                 text);
    numbers.push_back(number);
    const bool ends_group = read.ptr == end || *read.ptr == '/';
    if (ends_group) {
      REEF_REQUIRE(numbers.size() % 2 == 0, "anchors '{}': group {} has {} numbers; each anchor has two", text,
                   anchors.size(), numbers.size());
      for (std::size_t i = 0; i < numbers.size(); i += 2) anchors.back().emplace_back(numbers[i], numbers[i + 1]);
      REEF_REQUIRE(anchors.back().size() == anchors.front().size(), "anchors '{}': groups differ in length", text);
      numbers.clear();
      if (read.ptr != end) anchors.emplace_back();
    }
    at = read.ptr + 1;
  }
  return anchors;
}

bool have_raw_head_shapes(const std::vector<std::vector<std::int64_t>>& shapes, const DetectorOptions& options) {
  return !possible_heads(shapes, options).empty();
}

Result<std::optional<HeadDetections>> decode_raw_heads(std::span<const TensorValues> outputs,
                                                       const DetectorOptions& options) {
  std::optional<HeadDetections> nothing;
  std::vector<Dims> shapes;
  for (const TensorValues& output : outputs) shapes.push_back(dims_of(output.shape));
  std::vector<Heads> possible = possible_heads(shapes, options);
  if (possible.empty()) {
    if (auto rows = undecoded_rows(outputs, options)) possible.push_back(std::move(*rows));
  }
  if (possible.empty()) return nothing;
  if (are_decoded_pairs(outputs, possible[0])) return nothing;
  // Packed anchors and distributions can have the same number of channels; numbers decide then.
  const bool is_second = possible.size() > 1 && possible[0].kind == HeadKind::kAnchors && options.anchors.empty() &&
                         !has_objectness(outputs, possible[0]);
  REEF_ASSIGN_OR_RETURN(HeadDetections found, decode_heads(outputs, possible[is_second ? 1 : 0], options));
  return std::optional<HeadDetections>(std::move(found));
}

}  // namespace reef::evaluate
