// SPDX-License-Identifier: Apache-2.0
// Minimum cut of a network with capacities: the cheapest way to divide nodes into two sides (Dinic's algorithm).
//
// Node 0 is on the source's side, node 1 on the sink's. An edge costs its capacity if it leads from the source's side
// to the sink's. Of several cheapest divisions the one with the fewest nodes on the source's side is found.
#pragma once

#include <cstdint>
#include <vector>

#include "base/at.h"

namespace reef::passes {

class MinCut {
 public:
  static constexpr int kSource = 0, kSink = 1;
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;  // such an edge is not cut

  MinCut() : edges_of_(2) {}
  int add_node();
  void add_edge(int from, int to, std::int64_t capacity);
  // The cost; afterwards is_source_side tells the sides.
  std::int64_t solve();
  bool is_source_side(int node) const { return level_[at(node)] >= 0; }

 private:
  struct Edge {
    int to = 0;
    std::int64_t left = 0;
  };
  bool find_levels();
  std::int64_t push_path();

  std::vector<Edge> edges_;  // 2 k and 2 k + 1 are opposite
  std::vector<std::vector<int>> edges_of_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace reef::passes
