// SPDX-License-Identifier: Apache-2.0
// A part of an evaluation as text: what a metric keeps of some of the samples, computed in one process, for the figure
// that another process computes of all of them. A figure of parts has the bits of one that was computed in one piece,
// for any division into parts, because a metric keeps each sample on its own and adds them up in the samples' order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "evaluate/metric.h"

namespace reef::evaluate {

// `settings`: says what the part was computed of and how; parts with other settings are refused. `keys`: names of the
// samples, the same in all processes, in the metric's order.
std::string partial_text(const Metric& metric, const std::string& settings, std::span<const std::string> keys);

// Puts parts into a metric that was started with all samples.
class PartialMerger {
 public:
  PartialMerger(Metric& metric, std::string settings, const std::vector<std::string>& keys);

  // Fails for a part of something else, an unknown sample, or one that was there before: nothing counts twice.
  Status add(const std::string& text);
  // Fails where samples are missing, and says which.
  Status check_complete() const;

 private:
  Metric& metric_;
  std::string settings_;
  const std::vector<std::string>& keys_;
  std::map<std::string, std::int64_t> position_;
  std::vector<char> is_there_;
};

}  // namespace reef::evaluate
