// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluation.h"

#include <utility>

#include "data/subset.h"

namespace reef::evaluate {
namespace {

// `position`: the sample's number in the metric.
Status add_answer(std::int64_t sample, std::int64_t position, const cpu::Interpreter& interpreter,
                  const data::Dataset& dataset, const data::InputSpec& input, Metric& metric) {
  std::vector<TensorValues> outputs;
  for (int i = 0; i < interpreter.output_count(); ++i) {
    REEF_ASSIGN_OR_RETURN(TensorValues values, tensor_values(interpreter.output(i)));
    outputs.push_back(std::move(values));
  }
  REEF_ASSIGN_OR_RETURN(const data::Truth truth, dataset.truth(sample));
  Answer answer{outputs, truth, {}, {0, 0}};
  REEF_ASSIGN_OR_RETURN(answer.placement, dataset.placement(sample, input));
  // Only boxes in pixels need it, and for files it means decoding them once more.
  const bool are_boxes = truth.shape.size() == 2 && truth.shape[1] == 5 && truth.type != ir::DataType::kFloat64;
  if (are_boxes && dataset.holds_pictures()) {
    REEF_ASSIGN_OR_RETURN(answer.picture_size, dataset.picture_size(sample));
  }
  return metric.add(position, answer).in(dataset.name_of(sample));
}

}  // namespace

Result<Evaluation> evaluate(const std::shared_ptr<const ir::Model>& model, const data::Dataset& dataset, Metric& metric,
                            const RunnerOptions& options) {
  REEF_RETURN_IF_ERROR(dataset.truth(0).status());
  metric.start(dataset.size());
  const data::InputSpec input = data::input_spec(*model, 0);
  auto run = run_samples(model, dataset, options, [&](std::int64_t sample, cpu::Interpreter& interpreter) {
    return add_answer(sample, sample, interpreter, dataset, input, metric);
  });
  if (!run.ok()) return run.status();
  REEF_ASSIGN_OR_RETURN(Figure figure, metric.finish());
  return Evaluation{std::move(figure), dataset.size(), std::move(*run)};
}

Result<RunnerReport> answer_samples(const std::shared_ptr<const ir::Model>& model,
                                    const std::shared_ptr<const data::Dataset>& dataset,
                                    const std::vector<std::int64_t>& samples, Metric& metric,
                                    const RunnerOptions& options) {
  REEF_REQUIRE(!samples.empty(), "there are no samples to measure with");
  const data::InputSpec input = data::input_spec(*model, 0);
  const data::Subset subset(dataset, samples);
  return run_samples(model, subset, options, [&](std::int64_t position, cpu::Interpreter& interpreter) {
    return add_answer(samples[at(position)], position, interpreter, *dataset, input, metric);
  });
}

Result<Evaluation> evaluate(const std::shared_ptr<const ir::Model>& model,
                            const std::shared_ptr<const data::Dataset>& dataset, std::vector<std::int64_t> samples,
                            Metric& metric, const RunnerOptions& options) {
  metric.start(std::ssize(samples));
  REEF_ASSIGN_OR_RETURN(RunnerReport run, answer_samples(model, dataset, samples, metric, options));
  REEF_ASSIGN_OR_RETURN(Figure figure, metric.finish());
  return Evaluation{std::move(figure), std::ssize(samples), std::move(run)};
}

}  // namespace reef::evaluate
