// SPDX-License-Identifier: Apache-2.0
// Which preprocessing was a model trained with? The usual ones are tried on a few samples.
//
// With labels: the share of right answers. Without: how much a classifier's answers say about the pictures (the entropy
// of the mean answer less the mean entropy of answers): numbers of the wrong size make a network sure of one class
// whatever it is shown, or unsure of all. Of a detector, which has no such figure, the mean score of the best box of
// each picture. A hint and no proof; the caller says so.
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

// `options` name pictures. Nothing to compare (no classifier or detector, no pictures): an empty list.
Result<PreprocessProbe> probe_preprocess(const std::shared_ptr<const ir::Model>& model, data::DatasetOptions options,
                                         const RunnerOptions& run);

}  // namespace reef::evaluate
