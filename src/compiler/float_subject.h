// SPDX-License-Identifier: Apache-2.0
// A float model with samples to fit something to and others to judge the result with: where `reef prune` and `reef
// tune` begin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "compiler/front_end.h"
#include "data/dataset.h"
#include "evaluate/evaluation.h"

namespace reef::compiler {

// Some operator's result has 8 bits.
bool computes_in_bytes(const ir::Model& model);

// Reads a float model of any format and simplifies it. Fails for a model that computes with 8-bit integers.
Result<FrontEndResult> load_float_model(const std::string& path, const FrontEndOptions& options);

// The metric that suits what the model is for; empty: none does.
std::string usual_metric(const ir::Model& model);

// Mixes a set that is divided.
inline constexpr std::uint32_t kSplitSeed = 1;

// Samples for fitting are never those for judging, unless there are too few. Where one array or folder serves for both,
// it is mixed by a fixed seed and divided.
struct SampleParts {
  std::shared_ptr<const data::Dataset> fit, judge;
  std::vector<std::int64_t> fit_samples, judge_samples;  // numbers in these
  bool is_one_set = false;                               // both come from the same array or folder
  bool judged_apart = true;                              // false: too few samples, they serve for both
};
// At most so many of each kind.
Result<SampleParts> part_samples(const data::DatasetOptions& data, const ir::Model& model, std::int64_t most_fitted,
                                 std::int64_t most_judged);

// The figure of `metric` for `model` on some samples. `original`: the float model that the samples were opened for,
// whose input says what pictures in outputs mean.
Result<evaluate::Figure> measure_accuracy(const std::string& metric, const std::shared_ptr<const ir::Model>& model,
                                          const ir::Model& original,
                                          const std::shared_ptr<const data::Dataset>& dataset,
                                          const std::vector<std::int64_t>& samples, int threads, const Budget& budget);

}  // namespace reef::compiler
