// SPDX-License-Identifier: Apache-2.0
// Runs a model on samples, on several threads: one interpreter per thread, results used in the order of samples, so
// that what is gathered does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "execute/cpu/interpreter.h"
#include "ir/model.h"

namespace reef::cpu {

struct RunOptions {
  int threads = 1;
  std::function<void(std::int64_t done, std::int64_t total)> progress;  // called by one thread at a time
  Budget budget = {};
};

struct SampleHooks {
  // Each worker's interpreter gets this as its after_op. May be empty.
  std::function<std::function<Status(const OpRun&)>(int worker)> observer;
  // The inputs hold the sample; nothing has run yet. Called by the worker. May be empty.
  std::function<void(int worker, const Interpreter& interpreter)> inputs_ready;
  // The outputs are there. Called in the order of samples, by one thread at a time.
  std::function<Status(std::int64_t position, int worker, const Interpreter& interpreter)> use;
};

// Runs the model on each of `samples`, on options.threads threads.
Status run_samples(const std::shared_ptr<const ir::Model>& model, const data::SampleSource& source,
                   std::span<const std::int64_t> samples, const RunOptions& options, const SampleHooks& hooks);

}  // namespace reef::cpu
