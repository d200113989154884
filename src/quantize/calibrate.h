// SPDX-License-Identifier: Apache-2.0
// Runs a float model on samples and remembers what values its tensors take.
//
// Samples are dealt to threads in order, one interpreter per thread; what depends on order (moving averages, sums) is
// merged in the order of samples, so that any number of threads gives the same result. Memory depends on the model and
// the number of threads alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/sample_source.h"
#include "execute/cpu/run_samples.h"
#include "ir/model.h"
#include "quantize/statistics.h"

namespace reef::quantize {

struct Calibration {
  // Of the first subgraph. Constants and what was never computed: not seen(). Statistics of channels: of what layers
  // read and write, and of what else has a scale of its own in a residual stream (recover/equalize_streams.cpp).
  std::vector<TensorStatistics> tensors;
  std::int64_t samples = 0;
  std::int64_t repeated_samples = 0;  // inputs that equal those of the sample before, to the bit
};

using cpu::run_samples;
using cpu::RunOptions;
using cpu::SampleHooks;

// Told of every sample in order: its place in `samples`, its inputs and what its tensors were.
using UseOfSample = std::function<void(std::int64_t position, const std::vector<std::vector<std::byte>>& inputs,
                                       std::vector<SampleStatistics>& tensors)>;
// The histograms of all samples, by tensor; what depends on the order of samples is left to `use`.
Result<std::vector<Histogram>> observe_samples(const std::shared_ptr<const ir::Model>& model,
                                               const data::SampleSource& source, std::span<const std::int64_t> samples,
                                               const RunOptions& options, const UseOfSample& use);

// `model` must be verified. `samples`: numbers of the source's.
Result<Calibration> calibrate(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                              std::span<const std::int64_t> samples, const RunOptions& options);

// Who calibrates in the place of calibrate(): for work that is spread over processes.
using Calibrator =
    std::function<Result<Calibration>(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                      std::span<const std::int64_t> samples, const RunOptions& options)>;

}  // namespace reef::quantize
