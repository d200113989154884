// SPDX-License-Identifier: Apache-2.0
#include "compiler/float_subject.h"

#include <algorithm>

#include "evaluate/task.h"

namespace reef::compiler {
namespace {

constexpr std::int64_t kLeastSamples = 8;  // with fewer nothing is held back to judge with

}  // namespace

bool computes_in_bytes(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  return std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
    return !op.outputs.empty() && op.outputs[0] >= 0 && ir::is_integer_8(graph.tensors[at(op.outputs[0])].type);
  });
}

Result<FrontEndResult> load_float_model(const std::string& path, const FrontEndOptions& options) {
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(path, options));
  if (!loaded.is_simplified) {  // float16 weights, layouts and batch norms of other converters
    REEF_RETURN_IF_ERROR(simplify_once(loaded).status());
    REEF_RETURN_IF_ERROR(admit_model(loaded.model).status());
  }
  REEF_REQUIRE(!computes_in_bytes(loaded.model),
               "the model computes with 8-bit integers: give the float model it was made from");
  return loaded;
}

std::string usual_metric(const ir::Model& model) {
  switch (evaluate::task_of(model).kind) {
    case evaluate::TaskKind::kClassifier:
      return "top1";
    case evaluate::TaskKind::kDetector:
      return "map50";
    case evaluate::TaskKind::kSegmenter:
      return "miou";
    case evaluate::TaskKind::kPicture:
      return "psnr";
    default:
      return "";
  }
}

Result<SampleParts> part_samples(const data::DatasetOptions& data, const ir::Model& model, std::int64_t most_fitted,
                                 std::int64_t most_judged) {
  SampleParts parts;
  data::DatasetOptions options = data;
  options.use = data::Use::kCalibration;
  if (!options.shuffle_seed) options.shuffle_seed = kSplitSeed;
  REEF_ASSIGN_OR_RETURN(parts.fit, data::Dataset::open(options, model));
  options.use = data::Use::kEvaluation;
  REEF_ASSIGN_OR_RETURN(parts.judge, data::Dataset::open(options, model));
  const std::int64_t all = parts.fit->size();
  parts.is_one_set = parts.fit->describe() == parts.judge->describe();
  std::int64_t fitted = std::min(all, most_fitted), first_judged = 0;
  if (parts.is_one_set) {
    parts.judged_apart = all >= kLeastSamples;
    if (parts.judged_apart) {
      fitted = std::min(fitted, all - std::max<std::int64_t>(all / 4, 1));
      first_judged = fitted;
    }
  }
  for (std::int64_t i = 0; i < fitted; ++i) parts.fit_samples.push_back(i);
  const std::int64_t last = std::min(parts.judge->size(), first_judged + most_judged);
  for (std::int64_t i = first_judged; i < last; ++i) parts.judge_samples.push_back(i);
  return parts;
}

Result<evaluate::Figure> measure_accuracy(const std::string& name, const std::shared_ptr<const ir::Model>& model,
                                          const ir::Model& original,
                                          const std::shared_ptr<const data::Dataset>& dataset,
                                          const std::vector<std::int64_t>& samples, int threads, const Budget& budget) {
  evaluate::MetricOptions options;
  options.input = data::input_spec(original, 0);
  options.preprocess = dataset->preprocess().preprocess;
  REEF_ASSIGN_OR_RETURN(const auto metric, evaluate::make_metric(name, options, *dataset));
  evaluate::RunnerOptions run;
  run.threads = threads;
  run.budget = budget;
  REEF_ASSIGN_OR_RETURN(evaluate::Evaluation result, evaluate::evaluate(model, dataset, samples, *metric, run));
  return std::move(result.figure);
}

}  // namespace reef::compiler
