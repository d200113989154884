// SPDX-License-Identifier: Apache-2.0
#include "passes/float/min_cut.h"

#include <algorithm>

#include "base/at.h"

namespace reef::passes {

int MinCut::add_node() {
  edges_of_.emplace_back();
  return static_cast<int>(edges_of_.size()) - 1;
}

void MinCut::add_edge(int from, int to, std::int64_t capacity) {
  if (from == to) return;
  edges_of_[reef::at(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[reef::at(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels() {
  level_.assign(edges_of_.size(), -1);
  level_[kSource] = 0;
  std::vector<int> queue = {kSource};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    for (const int index : edges_of_[reef::at(queue[at])]) {
      const Edge& edge = edges_[reef::at(index)];
      if (edge.left == 0 || level_[reef::at(edge.to)] >= 0) continue;
      level_[reef::at(edge.to)] = level_[reef::at(queue[at])] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[kSink] >= 0;
}

// One path to the sink along growing levels, without recursion: networks may be deep.
std::int64_t MinCut::push_path() {
  std::vector<int> path;  // edges
  int node = kSource;
  while (node != kSink) {
    std::size_t& next = next_[reef::at(node)];
    const std::vector<int>& edges = edges_of_[reef::at(node)];
    bool advanced = false;
    for (; next < edges.size(); ++next) {
      const Edge& edge = edges_[reef::at(edges[next])];
      if (edge.left == 0 || level_[reef::at(edge.to)] != level_[reef::at(node)] + 1) {
        continue;
      }
      path.push_back(edges[next]);
      node = edge.to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    // A dead end: back, and past the edge that led here.
    node = edges_[reef::at(path.back() ^ 1)].to;
    path.pop_back();
    ++next_[reef::at(node)];
  }
  std::int64_t amount = kNever;
  for (const int index : path) amount = std::min(amount, edges_[reef::at(index)].left);
  for (const int index : path) {
    edges_[reef::at(index)].left -= amount;
    edges_[reef::at(index ^ 1)].left += amount;
  }
  return amount;
}

std::int64_t MinCut::solve() {
  std::int64_t total = 0;
  while (find_levels()) {
    next_.assign(edges_of_.size(), 0);
    while (const std::int64_t amount = push_path()) {
      total += amount;
      if (total >= kNever) return total;
    }
  }
  return total;
}

}  // namespace reef::passes
