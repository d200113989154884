// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metric.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "evaluate/box_truth.h"

namespace reef::evaluate {
namespace {

// The form of the boxes is told from all of them.
Result<BoxForm> form_of(const std::string& boxes, const data::Dataset& dataset) {
  std::vector<data::Truth> truths;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    REEF_ASSIGN_OR_RETURN(data::Truth truth, dataset.truth(i));
    truths.push_back(std::move(truth));
  }
  REEF_ASSIGN_OR_RETURN(const auto size, dataset.picture_size(0));
  return box_form(boxes, truths, size);
}

Result<std::unique_ptr<Metric>> make_map50_for(const data::Dataset& dataset, const MetricOptions& options) {
  REEF_ASSIGN_OR_RETURN(const BoxForm form, form_of(options.boxes, dataset));
  return make_map50(options, form);
}

}  // namespace

Result<std::string> settled_boxes(const std::string& boxes, const data::Dataset& dataset) {
  REEF_ASSIGN_OR_RETURN(const BoxForm form, form_of(boxes, dataset));
  return form.to_string();
}

Result<std::unique_ptr<Metric>> make_metric(const std::string& name, const MetricOptions& options,
                                            const data::Dataset& dataset) {
  if (name == "top1") return make_top_k(1, options);
  if (name == "top5") return make_top_k(5, options);
  if (name == "psnr") return make_psnr(options);
  if (name == "miou") return make_mean_iou(options);
  if (name == "map50") return make_map50_for(dataset, options);
  return invalid_input("there is no metric '{}'; there are {}", name, kMetricNames);
}

double bootstrap_error(std::int64_t samples, const std::function<double(std::span<const std::int64_t>)>& figure) {
  constexpr int kDraws = 200;
  if (samples < 2) return 0;
  std::mt19937_64 random(1);
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(samples));
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    for (std::int64_t& sample : drawn)
      sample = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(samples));
    const double value = figure(drawn);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  return std::sqrt(std::max(0.0, squares / kDraws - mean * mean) * kDraws / (kDraws - 1));
}

}  // namespace reef::evaluate
