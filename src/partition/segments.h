// SPDX-License-Identifier: Apache-2.0
// A model cut into several that run one behind the other, each on an Edge TPU of its own (edgetpu_compiler -n).
//
// A pipeline is as fast as its slowest segment, so cuts are placed where the largest predicted latency of a segment is
// smallest: the time on the chip with that chip's own parameter cache, transfers in and out, and operators that stay on
// the CPU. (Google's compiler balances parameter bytes.) Segments are runs of operators in execution order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "partition/check.h"
#include "partition/cost.h"

namespace reef::partition {

struct Segment {
  std::vector<std::int32_t> ops;              // consecutive operators of subgraph 0
  std::vector<std::int32_t> inputs, outputs;  // tensors; outputs are those of the model and what later segments read
  double predicted_us = 0;                    // of one inference; an estimate
};

// Every operator belongs to one segment. Fails if there are fewer operators than segments, `count` is below 1,
// or the model returns a tensor that no operator computes.
Result<std::vector<Segment>> cut_segments(const ir::Model& model, const Assessment& assessment, const Costs& costs,
                                          int count);

// A model of its own that computes `outputs` from `inputs` by the operators `ops` of subgraph 0. Names, quantization,
// metadata and what other subgraphs there are stay as they are; tensors and buffers that are not needed are dropped.
ir::Model extract_model(const ir::Model& model, const std::vector<std::int32_t>& ops,
                        const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs);

}  // namespace reef::partition
