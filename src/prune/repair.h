// SPDX-License-Identifier: Apache-2.0
// Fits the layers of a pruned model to the results of the original one, layer by layer in the order in which they run.
//
// Each layer is given the values that the pruned model computes in front of it, with all layers before it repaired
// already, and the results that the original model has: so a layer also makes up for errors of earlier ones and errors
// do not add up. The last layer of a residual branch aims at the sum behind it, with the stream as the pruned model has
// it. Ridge regression keeps weights near those they had; how much is chosen on samples that were not solved with.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "prune/remove_units.h"

namespace reef::prune {

struct RepairOptions {
  int threads = 1;
  Budget budget = {};
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  // Share of each layer's weights that become zero where they are; 0: none. The remaining ones are fitted.
  double zeros = 0;
};

struct RepairReport {
  int repaired = 0;                     // layers
  int too_wide = 0;                     // layers left as they were, because their rows are too long for a matrix
  std::int64_t zeros = 0, weights = 0;  // of all layers, where options.zeros asks for some
};

// `pruned` is `original` without some indices (`kept`); both with activations split (activations.h).
Result<RepairReport> repair(const ir::Model& original, const KeptIndices& kept, const data::SampleSource& source,
                            std::span<const std::int64_t> samples, const RepairOptions& options, ir::Model& pruned);

}  // namespace reef::prune
