// SPDX-License-Identifier: Apache-2.0
// The part of a study that puts removals in order: the cheapest in accuracy for what it saves first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "prune/study.h"

namespace reef::prune {
namespace {

// Error and saving between the points that were tried. The error grows with the square near 0 and exponentially
// between points, which keeps it convex; beyond the last point it goes on growing.
double error_at(const std::vector<TrialPoint>& trials, double removed) {
  if (removed <= 0) return 0;
  std::size_t k = 1;
  while (k + 1 < trials.size() && static_cast<double>(trials[k].removed) < removed) ++k;
  const TrialPoint &low = trials[k - 1], &high = trials[k];
  const double share = (removed - static_cast<double>(low.removed)) / static_cast<double>(high.removed - low.removed);
  if (k == 1) return high.error * share * share;
  return low.error * std::pow(high.error / low.error, share);
}

double saved_at(const std::vector<TrialPoint>& trials, double removed) {
  std::size_t k = 1;
  while (k + 1 < trials.size() && static_cast<double>(trials[k].removed) < removed) ++k;
  const TrialPoint &low = trials[k - 1], &high = trials[k];
  const double share = (removed - static_cast<double>(low.removed)) / static_cast<double>(high.removed - low.removed);
  return low.saved + share * (high.saved - low.saved);
}

}  // namespace

void Study::build_ladder() {
  struct Place {
    std::size_t removed = 0;
    std::vector<std::size_t> next;  // numbers of removed units that may follow, ascending
  };
  std::vector<Place> places(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const StudiedGroup& group = groups_[g];
    if (group.trials.size() < 2) continue;
    const std::size_t units = group.group.units.size();
    const auto each = static_cast<std::size_t>(group.group.channels_each);
    // Units whose channels are a multiple of what tiles like.
    std::size_t multiple = static_cast<std::size_t>(std::max(options_.multiple, 1));
    multiple = std::max<std::size_t>(1, multiple / std::gcd(multiple, each));
    if (units < 2 * multiple) multiple = 1;
    const auto least = std::max<std::size_t>(
        multiple, static_cast<std::size_t>(std::ceil(options_.least_kept * static_cast<double>(units))));
    for (std::size_t kept = (units - 1) / multiple * multiple; kept >= least && kept > 0; kept -= multiple) {
      places[g].next.push_back(units - kept);
      if (kept < multiple) break;
    }
  }
  std::vector<bool> block_stays(blocks_.size(), true);
  while (true) {
    std::size_t best = groups_.size();
    std::size_t best_block = blocks_.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (places[g].next.empty()) continue;
      const std::vector<TrialPoint>& trials = groups_[g].trials;
      const auto now = static_cast<double>(places[g].removed), then = static_cast<double>(places[g].next.front());
      const double saved = saved_at(trials, then) - saved_at(trials, now);
      const double price = (error_at(trials, then) - error_at(trials, now)) / std::max(saved, 1e-12);
      if (saved > 0 && price < least) least = price, best = g;
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const double price = blocks_[b].error / std::max(blocks_[b].saved, 1e-12);
      if (block_stays[b] && blocks_[b].saved > 0 && price < least) least = price, best_block = b;
    }
    if (best_block < blocks_.size()) {
      block_stays[best_block] = false;
      ladder_.push_back({best_block, 0, true});
      // Nothing is left of groups that the block's own layers compute.
      const std::vector<std::size_t>& gone = blocks_[best_block].block.ops;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const std::vector<std::size_t>& producers = groups_[g].group.producers;
        if (std::all_of(producers.begin(), producers.end(),
                        [&](std::size_t n) { return std::binary_search(gone.begin(), gone.end(), layers_[n].op); })) {
          places[g].next.clear();
        }
      }
      continue;
    }
    if (best == groups_.size()) return;
    Place& place = places[best];
    place.removed = place.next.front();
    place.next.erase(place.next.begin());
    ladder_.push_back({best, place.removed, false});
  }
}

}  // namespace reef::prune
