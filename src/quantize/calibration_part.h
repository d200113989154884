// SPDX-License-Identifier: Apache-2.0
// A part of a calibration: what one process saw of some of the samples, for another that puts all parts together.
//
// Histograms are counts, which add up in any order. What does depend on the order of samples (moving averages, sums) is
// kept for each sample apart and added in their order when all are there. So any division into parts, put together in
// any order, gives the bits of calibrate().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"
#include "quantize/calibrate.h"

namespace reef::quantize {

struct CalibrationPart {
  std::string subject;  // a hash of the model and of which samples there are in all
  struct Sample {
    std::int64_t position = 0;  // among all that calibrate
    std::string inputs;         // a hash: samples that repeat the one before are counted
    std::vector<SampleStatistics> statistics;
  };
  std::vector<Sample> samples;
  std::vector<Histogram> histograms;  // by tensor
};

// Runs the model on the samples at `positions` of `samples`.
Result<CalibrationPart> calibrate_part(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                       std::span<const std::int64_t> samples, std::span<const std::int64_t> positions,
                                       const RunOptions& options);

// Fails where parts are of something else, or a sample is in none or in two of them.
Result<Calibration> merge_parts(const ir::Model& model, std::span<const std::int64_t> samples,
                                const std::vector<CalibrationPart>& parts);

// The hash that parts of this work bear.
std::string calibration_subject(const ir::Model& model, std::span<const std::int64_t> samples);

std::vector<std::uint8_t> to_bytes(const CalibrationPart& part);
Result<CalibrationPart> read_part(std::span<const std::uint8_t> bytes);

}  // namespace reef::quantize
