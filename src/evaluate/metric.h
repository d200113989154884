// SPDX-License-Identifier: Apache-2.0
// How good a model's answers are, as one number. A metric is told the answers sample by sample, in any order and from
// several threads, and keeps for each what the figure needs; the figure is computed from these in the samples' order
// and so does not depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/outputs.h"

namespace reef::evaluate {

struct Figure {
  std::string metric;
  double value = 0;
  double standard_error = 0;  // of a sample this large; how it is estimated is the metric's business
  std::string unit;           // "dB"; empty: a share of 1
  std::vector<std::pair<std::string, double>> details;
};

// What a metric sees of a sample.
struct Answer {
  std::span<const TensorValues> outputs;
  const data::Truth& truth;
  data::Placement placement;         // where the picture lies in the input
  std::pair<int, int> picture_size;  // width and height before preprocessing; 0 where samples are no pictures
};

struct MetricOptions {
  int output = 0;        // which output of the model; detectors take all they need
  int label_offset = 0;  // class of the model = label + offset
  double score_threshold = 0.001;
  double nms_iou = 0.5;
  std::string detector = "auto";  // yolo5, yolo8, ssd
  std::string anchors;            // of raw heads, see yolo_heads.h; empty: the usual ones
  std::string boxes = "auto";     // how the data give boxes, see box_truth.h
  int ignored_label = 255;        // of masks
  // Of the model's input 0, which tells what unit pictures in the output are in.
  data::InputSpec input;
  data::Preprocess preprocess;
};

struct BoxForm;

class Metric {
 public:
  virtual ~Metric() = default;
  // Before the first answer.
  virtual void start(std::int64_t samples) = 0;
  // Once for each sample. Several threads may call it for different samples.
  virtual Status add(std::int64_t sample, const Answer& answer) = 0;
  // After the last answer.
  virtual Result<Figure> finish() const = 0;
  // What is kept of a sample that was added, for another process; and what another process has kept of one. A figure of
  // restored samples has the bits of one whose samples were all added here.
  virtual nlohmann::json kept(std::int64_t sample) const = 0;
  virtual Status restore(std::int64_t sample, const nlohmann::json& kept) = 0;
};

// "top1", "top5", "psnr", "miou", "map50". `dataset` is looked at for the form of its boxes.
Result<std::unique_ptr<Metric>> make_metric(const std::string& name, const MetricOptions& options,
                                            const data::Dataset& dataset);
// The form of the boxes that "auto" stands for, told from all samples; text for MetricOptions::boxes.
Result<std::string> settled_boxes(const std::string& boxes, const data::Dataset& dataset);
inline constexpr const char* kMetricNames = "top1, top5, map50, psnr, miou";

std::unique_ptr<Metric> make_top_k(int k, const MetricOptions& options);
std::unique_ptr<Metric> make_psnr(const MetricOptions& options);
std::unique_ptr<Metric> make_mean_iou(const MetricOptions& options);
std::unique_ptr<Metric> make_map50(const MetricOptions& options, const BoxForm& form);

// Standard error by bootstrap: `figure` of as many samples drawn with repetition, 200 times, same draws every time.
double bootstrap_error(std::int64_t samples, const std::function<double(std::span<const std::int64_t>)>& figure);

}  // namespace reef::evaluate
