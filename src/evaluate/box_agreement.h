// SPDX-License-Identifier: Apache-2.0
// Does a quantized detector find what the float one finds? The figure that somebody who looks at boxes would want:
// decibels and largest elements of its outputs say next to nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "data/sample_source.h"
#include "evaluate/boxes.h"
#include "evaluate/sample_runner.h"
#include "ir/model.h"

namespace reef::evaluate {

struct BoxAgreement {
  std::int64_t samples = 0;
  std::int64_t boxes = 0;       // of the float model, from the score on
  std::int64_t kept = 0;        // of them, with a box of the same class that overlaps by half in the other model
  std::int64_t added = 0;       // of the other model, without one in the float model
  double overlap = 0;           // mean of those kept, intersection over union
  double score_difference = 0;  // mean of those kept, without sign
  double least_score = 0.25;
};

// Both get the samples; the first `most` of them. `card` may name classes and keypoints. Boxes from `least_score` on
// count; those that only one model lifts above it count as lost or added, unless the other has them from half of it on.
Result<BoxAgreement> compare_boxes(const std::shared_ptr<const ir::Model>& float_model,
                                   const std::shared_ptr<const ir::Model>& other,
                                   const std::shared_ptr<const data::SampleSource>& source, std::int64_t most,
                                   const RunnerOptions& options);

// "139 of 139 boxes kept, 2 new; overlap 0.94, scores differ by 0.02 (16 samples, score from 0.25)".
std::string describe(const BoxAgreement& agreement);

}  // namespace reef::evaluate
