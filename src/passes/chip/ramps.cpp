// SPDX-License-Identifier: Apache-2.0
// Fewest pieces, by dynamic programming over corners: a state is an input, a level within one of the wanted one, and
// whether the wanted corner was passed. From each state, the slopes that keep a line within the tolerance narrow as it
// goes on; it reaches as far as any are left.
#include "passes/chip/ramps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/at.h"

namespace reef::passes {
namespace {

constexpr int kInputs = 256;
constexpr int kChoices = 3;  // one level below, on, above the wanted one
constexpr int kFar = std::numeric_limits<int>::max() / 2;

struct State {
  int index = 0, choice = 0, passed = 0;
  std::size_t number() const { return static_cast<std::size_t>((index * kChoices + choice) * 2 + passed); }
};

class PolygonSearch {
 public:
  explicit PolygonSearch(const PolygonRequest& request)
      : request_(request), pieces_(kInputs * kChoices * 2, kFar), before_(kInputs * kChoices * 2) {}

  std::optional<std::vector<Corner>> run() {
    for (int choice = 0; choice < kChoices; ++choice) {
      if (!is_allowed(0, choice)) continue;
      pieces_[State{0, choice, passes(0, choice)}.number()] = 0;
    }
    for (int index = 0; index < kInputs - 1; ++index) {
      for (int choice = 0; choice < kChoices; ++choice) {
        for (int passed = 0; passed < 2; ++passed) extend({index, choice, passed});
      }
    }
    return best();
  }

 private:
  std::int32_t level(int index, int choice) const { return request_.levels[at(index)] + choice - 1; }
  bool is_allowed(int index, int choice) const {
    const std::int32_t value = level(index, choice);
    return value >= request_.lowest && value <= request_.lowest + 255 && std::abs(choice - 1) <= request_.tolerance;
  }
  int passes(int index, int choice) const { return level(index, choice) == request_.through_level ? 1 : 0; }

  void extend(const State& from) {
    const int pieces = pieces_[from.number()];
    if (pieces >= kFar) return;
    const double start = level(from.index, from.choice);
    double low = -std::numeric_limits<double>::infinity(), high = -low;
    for (int index = from.index + 1; index < kInputs && low <= high; ++index) {
      const double run = index - from.index;
      const double wanted = request_.levels[at(index)] - start;
      low = std::max(low, (wanted - request_.tolerance) / run);
      high = std::min(high, (wanted + request_.tolerance) / run);
      for (int choice = 0; choice < kChoices; ++choice) {
        if (!is_allowed(index, choice)) continue;
        const double slope = (level(index, choice) - start) / run;
        if (slope < low || slope > high) continue;
        const State to{index, choice, std::max(from.passed, passes(index, choice))};
        if (pieces + 1 >= pieces_[to.number()]) continue;
        pieces_[to.number()] = pieces + 1;
        before_[to.number()] = from;
      }
    }
  }

  std::optional<std::vector<Corner>> best() const {
    State end{kInputs - 1, 0, 0};
    int fewest = kFar;
    for (const int choice : {1, 0, 2}) {
      for (const int passed : {1, 0}) {
        if (request_.must_pass && passed == 0) continue;
        const State state{kInputs - 1, choice, passed};
        if (pieces_[state.number()] >= fewest) continue;
        fewest = pieces_[state.number()];
        end = state;
      }
    }
    if (fewest >= kFar) return std::nullopt;
    std::vector<Corner> corners;
    for (State state = end;; state = before_[state.number()]) {
      corners.push_back({state.index, level(state.index, state.choice)});
      if (state.index == 0) break;
    }
    std::reverse(corners.begin(), corners.end());
    return corners;
  }

  const PolygonRequest& request_;
  std::vector<int> pieces_;
  std::vector<State> before_;
};

}  // namespace

std::optional<std::vector<Corner>> fit_polygon(const PolygonRequest& request) { return PolygonSearch(request).run(); }

}  // namespace reef::passes
