// SPDX-License-Identifier: Apache-2.0
// One model on many Edge TPUs: copies of it ("replicas"), each cut into segments with a device for each. Samples are
// shared out to the replicas (dealer.h), each of which is an assembly line (pipeline.h); results are used in order, and
// whoever uses them slows down those who compute.
//
// A replica of which a device fails is left out, and its samples go to the others. Models that keep state from one
// inference to the next are refused: their results would depend on who computed what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"
#include "runtime/dealer.h"
#include "runtime/edge_tpu.h"
#include "runtime/pipeline.h"

namespace reef::runtime {

struct ReplicaOptions {
  std::vector<std::shared_ptr<const ir::Model>> segments;  // compiled, in order
  DeviceList devices;                                      // replica 0's, one for each segment, then replica 1's ...
  std::int64_t samples = 0;
  std::int64_t window = 0;  // results that may wait for one before them; 0: four for each device
  Budget budget = {};
};

// `inputs` is called from several threads, `use` once for each sample, in order, one call at a time.
Result<DealerReport> run_replicas(const ReplicaOptions& options,
                                  const std::function<Result<PipelineTensors>(std::int64_t sample)>& inputs,
                                  const std::function<Status(std::int64_t sample, const PipelineTensors&)>& use);

}  // namespace reef::runtime
