// SPDX-License-Identifier: Apache-2.0
// Which method gives each tensor's range. First all tensors by one method; then, starting from the best of these, runs
// of neighbouring tensors by another. A run at a time, because one tensor's effect on the outputs drowns in the others'
// and measuring each alone would take hours; halves of a run that helped are not looked into again.
#include <algorithm>

#include <fmt/format.h>

#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kRuns = 12;  // pieces that the tensors are cut into
constexpr float kAlike = 0.01f;    // ranges that differ by less are the same

struct Candidate {
  RangeRequest request;
  std::string name;
};

Candidate candidate(const QuantizeOptions& options, RangeMethod method, std::string name, double percentile = 0) {
  const bool is_16 = options.mode == Mode::kInt16x8;
  return {RangeRequest{method, percentile, is_16 ? 65536 : 256, is_16}, std::move(name)};
}

bool differs(const Range& a, const Range& b) {
  const float span = std::max(a.max - a.min, b.max - b.min);
  return std::max(std::abs(a.min - b.min), std::abs(a.max - b.max)) > kAlike * span;
}

// What the samples have not shown, others will: fewer than a hundred hardly show how large values become, and one that
// is cut off can cost more than a coarser step costs all others. Of all tensors only: that of a few rests on a sample
// or two.
Status widen_ranges(Session& session) {
  for (const int percent : {10, 25}) {
    State state = session.best();
    for (RangeRequest& request : state.requests) request.room = percent / 100.0;
    state.refresh(session.options());
    REEF_RETURN_IF_ERROR(session.consider_on_unseen(std::move(state), fmt::format("ranges {} % beyond", percent)));
  }
  return ok_status();
}

}  // namespace

Status choose_ranges(Session& session) {
  const QuantizeOptions& options = session.options();
  const Candidate mse = candidate(options, RangeMethod::kMse, "mse"),
                  percentile = candidate(options, RangeMethod::kPercentile, "percentile 99.99", 99.99);
  const std::vector<Candidate> methods = {mse, percentile,
                                          candidate(options, RangeMethod::kPercentile, "percentile 99.9", 99.9),
                                          candidate(options, RangeMethod::kEntropy, "entropy")};
  const std::vector<Candidate> others = {candidate(options, RangeMethod::kMinMax, "minmax"), mse, percentile};
  for (const Candidate& method : methods) {
    State state = session.best();
    std::fill(state.requests.begin(), state.requests.end(), method.request);
    state.refresh(session.options());
    REEF_RETURN_IF_ERROR(session.consider(std::move(state), fmt::format("ranges by {}", method.name)));
  }
  std::vector<std::size_t> seen;
  for (std::size_t t = 0; t < session.best().calibration->tensors.size(); ++t) {
    if (session.best().calibration->tensors[t].seen()) seen.push_back(t);
  }
  for (const Candidate& method : others) {
    for (std::size_t run = 0; run < kRuns; ++run) {
      State state = session.best();
      const std::size_t begin = run * seen.size() / kRuns, end = (run + 1) * seen.size() / kRuns;
      for (std::size_t i = begin; i < end; ++i) state.requests[seen[i]] = method.request;
      state.refresh(session.options());
      bool changes = false;
      for (std::size_t i = begin; i < end; ++i) {
        changes = changes || differs(state.plan.ranges[seen[i]], session.best().plan.ranges[seen[i]]);
      }
      if (!changes) continue;
      REEF_RETURN_IF_ERROR(session.consider(std::move(state), fmt::format("ranges by {} for tensors {} to {} of {}",
                                                                          method.name, begin, end, seen.size())));
    }
  }
  return widen_ranges(session);
}

}  // namespace reef::quantize
