// SPDX-License-Identifier: Apache-2.0
// A model, data and a metric: one figure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/metric.h"
#include "evaluate/sample_runner.h"

namespace reef::evaluate {

struct Evaluation {
  Figure figure;
  std::int64_t samples = 0;
  RunnerReport run;
};

// The figure does not depend on the number of threads. `model` must have passed ir::verify.
Result<Evaluation> evaluate(const std::shared_ptr<const ir::Model>& model, const data::Dataset& dataset, Metric& metric,
                            const RunnerOptions& options);

// Adds the answers to some of the samples, by number, to a metric that was started; their places in it are those in
// `samples`.
Result<RunnerReport> answer_samples(const std::shared_ptr<const ir::Model>& model,
                                    const std::shared_ptr<const data::Dataset>& dataset,
                                    const std::vector<std::int64_t>& samples, Metric& metric,
                                    const RunnerOptions& options);

// The same as a figure.
Result<Evaluation> evaluate(const std::shared_ptr<const ir::Model>& model,
                            const std::shared_ptr<const data::Dataset>& dataset, std::vector<std::int64_t> samples,
                            Metric& metric, const RunnerOptions& options);

}  // namespace reef::evaluate
