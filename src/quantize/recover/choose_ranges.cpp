// SPDX-License-Identifier: Apache-2.0
// Which method gives each tensor's range. First all tensors by one method; then, starting from the best of these, runs
// of neighbouring tensors by another. A run at a time, because one tensor's effect on the outputs drowns in the others'
// and measuring each alone would take hours; halves of a run that helped are not looked into again.
#include <algorithm>

#include <fmt/format.h>

#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kRuns = 6;  // pieces that the tensors are cut into
constexpr float kAlike = 0.01f;   // ranges that differ by less are the same

struct Candidate {
  RangeRequest request;
  std::string name;
};

std::vector<Candidate> candidates(const QuantizeOptions& options) {
  const bool is_16 = options.mode == Mode::kInt16x8;
  const auto of = [&](RangeMethod method, double percentile) {
    return RangeRequest{method, percentile, is_16 ? 65536 : 256, is_16};
  };
  return {{of(RangeMethod::kMse, 0), "mse"},
          {of(RangeMethod::kPercentile, 99.99), "percentile 99.99"},
          {of(RangeMethod::kPercentile, 99.9), "percentile 99.9"},
          {of(RangeMethod::kEntropy, 0), "entropy"}};
}

bool differs(const Range& a, const Range& b) {
  const float span = std::max(a.max - a.min, b.max - b.min);
  return std::max(std::abs(a.min - b.min), std::abs(a.max - b.max)) > kAlike * span;
}

}  // namespace

Status choose_ranges(Session& session) {
  const std::vector<Candidate> methods = candidates(session.options());
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
  std::vector<Candidate> others = {
      {{RangeMethod::kMinMax, 0, methods[0].request.levels, methods[0].request.symmetric}, "minmax"},
      methods[0],
      methods[1]};
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
  return ok_status();
}

}  // namespace reef::quantize
