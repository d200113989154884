// SPDX-License-Identifier: Apache-2.0
// What a Flow was told to do, as its runs read it; private to flow.cpp and flow_run.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/flow.h"

namespace reef::data {

// Samples as the steps before it left them, by number. Shared by all runs of a Flow.
class SampleCache {
 public:
  explicit SampleCache(std::int64_t most_bytes) : left_(most_bytes) {}
  void keep(const FlowSample& sample);  // does nothing where there is no room
  bool find(std::int64_t number, FlowSample& sample) const;

 private:
  mutable std::mutex mutex_;
  std::int64_t left_;  // bytes
  std::map<std::int64_t, std::shared_ptr<const FlowSample>> samples_;
};

struct FlowStep {
  std::string name;
  std::function<Status(FlowSample&, const VariationKey&)> run;
};

struct FlowPlan {
  std::shared_ptr<const SampleStore> store;
  std::vector<std::function<std::vector<std::int64_t>(std::vector<std::int64_t>, std::int64_t epoch)>> ordering;
  std::vector<FlowStep> steps;
  std::shared_ptr<SampleCache> cache;  // null: none
  std::size_t cached_steps = 0;        // number of the step that fills the cache
  bool has_decode = false, drop_last = false;
  int variations = 0;  // random steps
  std::int64_t batch = 1, ahead = 0;
  double mixup = 0;
  int threads = 0;
  std::uint64_t seed = 0;
  Status problem;  // the first

  void fail(const Status& status) {
    if (problem.ok()) problem = status;
  }
  static Result<std::unique_ptr<FlowRun>> run(std::shared_ptr<const FlowPlan> plan, std::vector<std::int64_t> order,
                                              std::int64_t epoch);
};

// Puts the samples of a batch together, mixed as the plan says. `samples` has one at least.
Result<Batch> make_batch(std::vector<FlowSample> samples, double mixup, const VariationKey& key);

}  // namespace reef::data
