// SPDX-License-Identifier: Apache-2.0
// Runs a model on many samples, shared out over threads: one interpreter (and one emulated chip) for each thread, each
// sample on its own from the same state. A real device is shared by all threads. Several devices (Placement::replicas)
// share the samples (runtime/dealer.h): two threads for each at least, so that the host prepares a sample while its
// device is at work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "execute/cpu/interpreter.h"
#include "runtime/dealer.h"
#include "runtime/placement.h"

namespace reef::evaluate {

struct RunnerOptions {
  int threads = 1;
  runtime::Placement place;  // of Edge TPU ops
  ops::TfliteRelease tflite_release = ops::TfliteRelease::kCurrent;
  ops::FloatSums float_sums = ops::FloatSums::kAsTflite;
  // Told after every sample how many are done; one call at a time.
  std::function<void(std::int64_t done, std::int64_t all)> progress;
  Budget budget = {};
};

struct RunnerReport {
  double seconds = 0;            // measured, from start to end
  double inference_seconds = 0;  // measured, of all inferences together, on all threads
  double fetch_seconds = 0;      // the same, of reading and preparing inputs
  double answer_seconds = 0;     // the same, of what was done with outputs
  runtime::DealerReport devices;
  std::vector<std::string> notes;  // of the interpreter, and of devices that failed
};

// `model` must have passed ir::verify. `answer` is called once for each sample, from any thread, with an interpreter
// that has just run it. If samples fail, the error is that of the lowest number among those that were tried.
Result<RunnerReport> run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                                 const RunnerOptions& options,
                                 const std::function<Status(std::int64_t sample, cpu::Interpreter&)>& answer);

}  // namespace reef::evaluate
