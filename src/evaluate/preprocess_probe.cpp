// SPDX-License-Identifier: Apache-2.0
#include "evaluate/preprocess_probe.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "evaluate/boxes.h"
#include "evaluate/outputs.h"
#include "evaluate/task.h"

namespace reef::evaluate {
namespace {

constexpr std::int64_t kSamples = 48;
// Of presets that are worth trying: all that map pixels to numbers. A crop changes little and is not tried.
constexpr const char* kTried[] = {"none", "unit", "tf", "imagenet", "caffe"};
constexpr const char* kTriedOnDetectors[] = {"none", "unit", "tf", "yolo"};
// What is clearly better: by a fifth of what there is, and by more than few samples could be by chance.
constexpr double kClearly = 1.2, kLeastShare = 0.1, kLeastNats = 0.15, kLeastScore = 0.1;

// A row as probabilities: as it is where it sums to 1, else by softmax.
std::vector<double> probabilities(const std::vector<double>& row) {
  double sum = 0;
  bool are_shares = true;
  for (const double value : row) {
    sum += value;
    are_shares = are_shares && value >= -1e-3 && value <= 1.001;
  }
  std::vector<double> result = row;
  if (!(are_shares && std::abs(sum - 1) < 0.1)) {
    const double most = *std::max_element(row.begin(), row.end());
    sum = 0;
    for (double& value : result) sum += value = std::exp(value - most);
  }
  for (double& value : result) value = std::max(0.0, value) / sum;
  return result;
}

double entropy(const std::vector<double>& shares) {
  double sum = 0;
  for (const double share : shares) sum -= share > 0 ? share * std::log(share) : 0;
  return sum;
}

// What one preset gives on the samples.
class Tally {
 public:
  Tally(const Task& task, const ir::Model& model, bool has_truth) : task_(task), has_truth_(has_truth) {
    const PictureSize size = input_picture(model);
    detector_.kind = task.family == "ssd" ? "ssd" : "auto";
    detector_.input_width = size.width;
    detector_.input_height = size.height;
  }

  Status add(const data::Dataset& dataset, std::int64_t sample, const cpu::Interpreter& interpreter) {
    std::vector<TensorValues> outputs;
    for (int i = 0; i < interpreter.output_count(); ++i) {
      REEF_ASSIGN_OR_RETURN(outputs.emplace_back(), tensor_values(interpreter.output(i)));
    }
    double best_box = 0;
    std::vector<double> shares;
    std::int64_t right = -1;
    if (task_.kind == TaskKind::kDetector) {
      REEF_ASSIGN_OR_RETURN(const auto boxes, decode_detections(outputs, detector_));
      best_box = boxes.empty() ? 0 : std::min(1.0, boxes.front().score);
    } else {
      REEF_REQUIRE(!outputs[0].values.empty(), "the output is empty");
      shares = probabilities(outputs[0].values);
      if (has_truth_) {
        REEF_ASSIGN_OR_RETURN(const data::Truth truth, dataset.truth(sample));
        if (truth.shape.empty() && truth.values.size() == 1) right = static_cast<std::int64_t>(truth.values[0]);
      }
    }
    const std::scoped_lock lock(mutex_);
    ++count_;
    best_boxes_ += best_box;
    if (shares.empty()) return ok_status();
    // Every sample adds the same numbers in any order but for rounding, which no verdict hangs on.
    entropies_ += entropy(shares);
    mean_.resize(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) mean_[i] += shares[i];
    const auto answer = std::max_element(shares.begin(), shares.end()) - shares.begin();
    right_ += answer == right ? 1 : 0;
    return ok_status();
  }

  double figure() const {
    const auto count = static_cast<double>(std::max<std::int64_t>(count_, 1));
    if (task_.kind == TaskKind::kDetector) return best_boxes_ / count;
    if (has_truth_) return right_ / count;
    std::vector<double> mean = mean_;
    for (double& share : mean) share /= count;
    return std::max(0.0, entropy(mean) - entropies_ / count);
  }

 private:
  const Task& task_;
  const bool has_truth_;
  DetectorOptions detector_;
  std::mutex mutex_;
  std::int64_t count_ = 0;
  double best_boxes_ = 0, entropies_ = 0, right_ = 0;
  std::vector<double> mean_;
};

Result<double> figure_of(const std::shared_ptr<const ir::Model>& model, const data::DatasetOptions& options,
                         const Task& task, bool has_truth, const RunnerOptions& run) {
  REEF_ASSIGN_OR_RETURN(const auto dataset, data::Dataset::open(options, *model));
  Tally tally(task, *model, has_truth);
  const auto done = run_samples(model, *dataset, run, [&](std::int64_t sample, cpu::Interpreter& interpreter) {
    return tally.add(*dataset, sample, interpreter);
  });
  if (!done.ok()) return done.status();
  return tally.figure();
}

}  // namespace

Result<PreprocessProbe> probe_preprocess(const std::shared_ptr<const ir::Model>& model, data::DatasetOptions options,
                                         const RunnerOptions& run) {
  PreprocessProbe probe;
  const Task task = task_of(*model);
  const bool is_detector = task.kind == TaskKind::kDetector;
  if (!is_detector && task.kind != TaskKind::kClassifier) return probe;
  options.limit = options.limit > 0 ? std::min(options.limit, kSamples) : kSamples;
  if (!options.shuffle_seed) options.shuffle_seed = 1;  // names often go by class
  REEF_ASSIGN_OR_RETURN(const auto dataset, data::Dataset::open(options, *model));
  if (!dataset->holds_pictures()) return probe;
  const bool has_truth = !is_detector && dataset->has_truth();
  probe.measure = is_detector ? "mean score of the best box"
                  : has_truth ? "share of right answers"
                              : "information in the answers, in nats,";
  REEF_ASSIGN_OR_RETURN(probe.chosen, figure_of(model, options, task, has_truth, run));
  const auto try_preset = [&](const char* name) -> Status {
    options.preprocess = name;
    REEF_ASSIGN_OR_RETURN(const double figure, figure_of(model, options, task, has_truth, run));
    probe.presets.push_back({name, figure});
    return ok_status();
  };
  if (is_detector) {
    for (const char* name : kTriedOnDetectors) REEF_RETURN_IF_ERROR(try_preset(name));
  } else {
    for (const char* name : kTried) REEF_RETURN_IF_ERROR(try_preset(name));
  }
  std::stable_sort(probe.presets.begin(), probe.presets.end(),
                   [](const ProbedPreset& a, const ProbedPreset& b) { return a.figure > b.figure; });
  const double least = is_detector ? kLeastScore : has_truth ? kLeastShare : kLeastNats;
  const ProbedPreset& best = probe.presets.front();
  if (best.figure > kClearly * probe.chosen && best.figure > probe.chosen + least) probe.better = best.name;
  return probe;
}

}  // namespace reef::evaluate
