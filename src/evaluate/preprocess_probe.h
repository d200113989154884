// SPDX-License-Identifier: Apache-2.0
// Which preprocessing was a model trained with? The usual ones are tried on a few samples.
//
// With labels, the measure is the share of right answers. Without labels, a classifier is asked twice about each
// picture, the second time mirrored and with less contrast; the measure is the information that the two answers share.
// (How sure the answers are is no measure: numbers that are too large make a network sure of anything.) For a detector,
// the measure is the mean score of the best box of each picture. The result is a hint and no proof; the caller says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset.h"
#include "evaluate/sample_runner.h"
#include "ir/model.h"

namespace reef::evaluate {

struct ProbedPreset {
  std::string name;
  double figure = 0;
};

struct PreprocessProbe {
  std::string measure;                // "share of right answers", "mean score of the best box" ...
  std::vector<ProbedPreset> presets;  // best first
  double chosen = 0;                  // the figure of what `options` choose
  // The preset that is clearly better than what was chosen; empty: none is.
  std::string better;
};

// `options` name pictures, of which at most `most_samples` are used. Where there is nothing to compare (no classifier
// or detector, no pictures) the list is empty.
Result<PreprocessProbe> probe_preprocess(const std::shared_ptr<const ir::Model>& model, data::DatasetOptions options,
                                         std::int64_t most_samples, const RunnerOptions& run);

}  // namespace reef::evaluate
