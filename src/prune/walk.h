// SPDX-License-Identifier: Apache-2.0
// A model run operator by operator on all samples at once, so that a layer can be changed when the values that it reads
// are known, and everything behind it sees the change. Values are kept from the operator that computes them to the last
// one that reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "data/sample_source.h"
#include "ir/model.h"

namespace reef::prune {

class Walk {
 public:
  // `model` must be verified and outlive this; its operators and tensors keep their numbers while walking, constants
  // may change.
  Walk(const ir::Model& model, int threads, Budget budget);

  // Reads the inputs of these samples.
  Status start(const data::SampleSource& source, std::span<const std::int64_t> samples);
  // Runs the next operator, which must be number `op`, on all samples.
  Status step(std::size_t op);
  // Forgets what operators up to `op` alone have read.
  void forget_behind(std::size_t op);

  std::size_t samples() const { return count_; }
  // A float tensor's values; empty: not computed yet, forgotten, or constant.
  std::span<const float> values(std::int32_t tensor, std::size_t sample) const;

 private:
  const ir::Model& model_;
  const int threads_;
  const Budget budget_;
  std::size_t count_ = 0;
  std::vector<std::size_t> last_use_;  // by tensor: operator; the number of operators: an output
  std::vector<std::vector<std::vector<std::uint8_t>>> values_;  // [tensor][sample]
};

// Bytes that a walk over `samples` samples holds at its peak, about.
double walk_bytes(const ir::Model& model, std::size_t samples);

}  // namespace reef::prune
