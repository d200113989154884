// SPDX-License-Identifier: Apache-2.0
#include "evaluate/preprocess_probe.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "evaluate/boxes.h"
#include "evaluate/outputs.h"
#include "evaluate/task.h"

namespace reef::evaluate {
namespace {

// Presets that are worth trying: all that map pixels to numbers. A crop changes little and is not tried.
constexpr const char* kTried[] = {"none", "unit", "tf", "imagenet", "caffe"};
constexpr const char* kTriedOnDetectors[] = {"none", "unit", "tf", "yolo"};
// What is clearly better: by a fifth of what there is, and by more than few samples could be by chance.
constexpr double kClearly = 1.2, kLeastShare = 0.1, kLeastNats = 0.15, kLeastScore = 0.1;
// A classifier that knows its pictures says at least this part of what could be said of them: the logarithm of the
// number of classes or of samples.
constexpr double kSaysSomething = 0.25;
// A detector that is this sure of its best boxes sees something. Higher scores with other numbers prove nothing then:
// numbers that are too large make it sure of anything.
constexpr double kSeesSomething = 0.35;

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

// The second view of a picture in the input: mirrored, with less contrast. What it shows stays the same.
void change_view(cpu::Interpreter& interpreter) {
  constexpr double kContrast = 0.8;
  const ops::Tensor& input = interpreter.input(0);
  if (input.type != ir::DataType::kFloat32 || input.shape.rank() != 4) return;
  const std::span<std::byte> bytes = interpreter.input_bytes(0);
  const std::span<float> values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  double mean = 0;
  for (const float value : values) mean += value;
  mean /= static_cast<double>(std::max<std::size_t>(values.size(), 1));
  for (float& value : values) value = static_cast<float>(mean + kContrast * (value - mean));
  const auto width = static_cast<std::size_t>(input.shape[2]), channels = static_cast<std::size_t>(input.shape[3]);
  const std::size_t row = width * channels;
  for (std::size_t start = 0; row > 0 && start + row <= values.size(); start += row) {
    for (std::size_t x = 0; x < width / 2; ++x) {
      float* const left = values.data() + start + x * channels;
      std::swap_ranges(left, left + channels, values.data() + start + (width - 1 - x) * channels);
    }
  }
}

// Two views of a picture and what a classifier says of each, as probabilities.
struct Views {
  std::vector<double> first, second;
};

// The information, in nats, that the answer to one view gives about the answer to the other. A network that is fed
// numbers of the right size sees the same thing in both views, and different things in different pictures. One that is
// fed numbers that are too large is sure of itself, but of another class in every view; one that is fed numbers that
// are too small gives the same answer to everything.
//
// `shift`: the second view is that of the picture so many places further on. Pictures that have nothing to do with each
// other share no information, and what the formula says of them is what it says by chance of so few samples.
double shared_information(const std::vector<Views>& answers, std::size_t shift) {
  constexpr std::size_t kMostClasses = 256;  // those less usual count as one class
  if (answers.empty()) return 0;
  const std::size_t classes = answers[0].first.size();
  std::vector<double> mean(classes);
  for (const Views& views : answers) {
    for (std::size_t i = 0; i < classes; ++i) mean[i] += views.first[i] + views.second[i];
  }
  std::vector<std::size_t> order(classes), place(classes);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return mean[a] > mean[b]; });
  const std::size_t kept = std::min(classes, kMostClasses);
  for (std::size_t i = 0; i < classes; ++i) place[order[i]] = std::min(i, kept - 1);
  std::vector<double> joint(kept * kept), alone(kept);
  for (std::size_t s = 0; s < answers.size(); ++s) {
    const std::vector<double>& second = answers[(s + shift) % answers.size()].second;
    std::vector<double> a(kept), b(kept);
    for (std::size_t i = 0; i < classes; ++i) {
      a[place[i]] += answers[s].first[i];
      b[place[i]] += second[i];
    }
    const double weight = 0.5 / static_cast<double>(answers.size());
    for (std::size_t i = 0; i < kept; ++i) {
      alone[i] += weight * (a[i] + b[i]);
      for (std::size_t j = 0; j < kept; ++j) joint[i * kept + j] += weight * (a[i] * b[j] + a[j] * b[i]);
    }
  }
  return std::max(0.0, 2 * entropy(alone) - entropy(joint));
}

// The same beyond chance: less the mean over pairs of different pictures.
double shared_beyond_chance(const std::vector<Views>& answers) {
  constexpr std::size_t kMostShifts = 8;
  const std::size_t shifts = std::min(kMostShifts, answers.empty() ? 0 : answers.size() - 1);
  double by_chance = 0;
  for (std::size_t shift = 1; shift <= shifts; ++shift) by_chance += shared_information(answers, shift);
  by_chance /= static_cast<double>(std::max<std::size_t>(shifts, 1));
  return std::max(0.0, shared_information(answers, 0) - by_chance);
}

// What one preset gives on the samples.
class Tally {
 public:
  Tally(const Task& task, const ir::Model& model, bool has_truth, std::int64_t samples)
      : task_(task), has_truth_(has_truth), answers_(static_cast<std::size_t>(samples)) {
    const PictureSize size = input_picture(model);
    detector_.kind = task.family == "ssd" ? "ssd" : "auto";
    detector_.input_width = size.width;
    detector_.input_height = size.height;
  }

  // `interpreter` has just run the sample.
  Status add(const data::Dataset& dataset, std::int64_t sample, cpu::Interpreter& interpreter) {
    if (task_.kind == TaskKind::kDetector) return add_boxes(interpreter);
    REEF_ASSIGN_OR_RETURN(std::vector<double> shares, answer_of(interpreter));
    if (!has_truth_) {
      change_view(interpreter);
      REEF_RETURN_IF_ERROR(interpreter.invoke());
      REEF_ASSIGN_OR_RETURN(std::vector<double> second, answer_of(interpreter));
      const std::scoped_lock lock(mutex_);
      answers_[at(sample)] = {std::move(shares), std::move(second)};
      return ok_status();
    }
    REEF_ASSIGN_OR_RETURN(const data::Truth truth, dataset.truth(sample));
    const bool has_class = truth.shape.empty() && truth.values.size() == 1;
    const auto answer = std::max_element(shares.begin(), shares.end()) - shares.begin();
    const std::scoped_lock lock(mutex_);
    ++count_;
    right_ += has_class && answer == static_cast<std::int64_t>(truth.values[0]) ? 1 : 0;
    return ok_status();
  }

  double figure() {
    const auto count = static_cast<double>(std::max<std::int64_t>(count_, 1));
    if (task_.kind == TaskKind::kDetector) return best_boxes_ / count;
    if (!has_truth_) std::erase_if(answers_, [](const Views& views) { return views.first.empty(); });
    return has_truth_ ? right_ / count : shared_beyond_chance(answers_);
  }

 private:
  static Result<std::vector<double>> answer_of(const cpu::Interpreter& interpreter) {
    REEF_ASSIGN_OR_RETURN(const TensorValues output, tensor_values(interpreter.output(0)));
    REEF_REQUIRE(!output.values.empty(), "the output is empty");
    return probabilities(output.values);
  }

  Status add_boxes(const cpu::Interpreter& interpreter) {
    std::vector<TensorValues> outputs;
    for (int i = 0; i < interpreter.output_count(); ++i) {
      REEF_ASSIGN_OR_RETURN(outputs.emplace_back(), tensor_values(interpreter.output(i)));
    }
    REEF_ASSIGN_OR_RETURN(const auto boxes, decode_detections(outputs, detector_));
    const std::scoped_lock lock(mutex_);
    ++count_;
    best_boxes_ += boxes.empty() ? 0 : std::min(1.0, boxes.front().score);
    return ok_status();
  }

  const Task& task_;
  const bool has_truth_;
  DetectorOptions detector_;
  std::mutex mutex_;
  std::int64_t count_ = 0;
  double best_boxes_ = 0, right_ = 0;
  std::vector<Views> answers_;
};

Result<double> figure_of(const std::shared_ptr<const ir::Model>& model, const data::DatasetOptions& options,
                         const Task& task, bool has_truth, const RunnerOptions& run) {
  REEF_ASSIGN_OR_RETURN(const auto dataset, data::Dataset::open(options, *model));
  Tally tally(task, *model, has_truth, dataset->size());
  const auto done = run_samples(model, *dataset, run, [&](std::int64_t sample, cpu::Interpreter& interpreter) {
    return tally.add(*dataset, sample, interpreter);
  });
  if (!done.ok()) return done.status();
  return tally.figure();
}

// The first output's elements.
double classes_of(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Shape& shape = graph.tensors[at(graph.outputs[0])].shape;
  return static_cast<double>(std::max<std::int64_t>(shape.elements(), 1));
}

}  // namespace

Result<PreprocessProbe> probe_preprocess(const std::shared_ptr<const ir::Model>& model, data::DatasetOptions options,
                                         std::int64_t most_samples, const RunnerOptions& run) {
  PreprocessProbe probe;
  const Task task = task_of(*model);
  const bool is_detector = task.kind == TaskKind::kDetector;
  if (!is_detector && task.kind != TaskKind::kClassifier) return probe;
  options.limit = options.limit > 0 ? std::min(options.limit, most_samples) : most_samples;
  if (!options.shuffle_seed) options.shuffle_seed = 1;  // names often go by class
  REEF_ASSIGN_OR_RETURN(const auto dataset, data::Dataset::open(options, *model));
  if (!dataset->holds_pictures()) return probe;
  const bool has_truth = !is_detector && dataset->has_truth();
  probe.measure = is_detector ? "mean score of the best box"
                  : has_truth ? "share of right answers"
                              : "information shared by the answers to two views of each picture, in nats:";
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
  const ProbedPreset& best = probe.presets.front();
  const auto samples = static_cast<double>(dataset->size());
  double least = kLeastScore;
  bool may_be_wrong = probe.chosen < kSeesSomething;
  if (has_truth) {
    // By chance a share is off by its standard error, which few samples make large.
    least = std::max(kLeastShare, 2 * std::sqrt(best.figure * (1 - best.figure) / samples));
    may_be_wrong = true;
  } else if (!is_detector) {
    // Untrained weights say more or less the same of everything, with any preprocessing.
    least = kLeastNats;
    may_be_wrong = best.figure >= kSaysSomething * std::log(std::min(samples, classes_of(*model)));
  }
  if (may_be_wrong && best.figure > kClearly * probe.chosen && best.figure > probe.chosen + least) {
    probe.better = best.name;
  }
  return probe;
}

}  // namespace reef::evaluate
