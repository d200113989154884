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

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "execute/cpu/interpreter.h"
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

struct RunOptions {
  int threads = 1;
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // called by one thread at a time
  Budget budget = {};
};

// `model` must be verified. `samples`: numbers of the source's.
Result<Calibration> calibrate(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                              std::span<const std::int64_t> samples, const RunOptions& options);

struct SampleHooks {
  // Each worker's interpreter gets this as its after_op. May be empty.
  std::function<std::function<Status(const cpu::OpRun&)>(int worker)> observer;
  // The inputs hold the sample; nothing has run yet. Called by the worker. May be empty.
  std::function<void(int worker, const cpu::Interpreter& interpreter)> inputs_ready;
  // The outputs are there. Called in the order of samples, by one thread at a time.
  std::function<Status(std::int64_t position, int worker, const cpu::Interpreter& interpreter)> use;
};

// Runs the model on each of `samples`, on options.threads threads.
Status run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                   std::span<const std::int64_t> samples, const RunOptions& options, const SampleHooks& hooks);

}  // namespace reef::quantize
