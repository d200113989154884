// SPDX-License-Identifier: Apache-2.0
// A part of the graph whose tensors could be in another layout: everything that a conversion (TRANSPOSE, RESHAPE of
// axes of size 1) can be moved through, and which of it should be, so that the least is moved in total.
//
// From one tensor the layout spreads over operators that can work in it, through their operands to the next ones. Each
// such operator either stays or works in the other layout; where neighbours differ, a conversion stands between them.
// Conversions at the border become others, or nothing where they give the very layout. The cheapest choice is a minimum
// cut.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "passes/float/layout_rules.h"
#include "passes/pass.h"

namespace reef::passes {

class LayoutRegion {
 public:
  // Spreads from `seed`, which shall have `layout`.
  LayoutRegion(const Graph& graph, TensorId seed, const Layout& layout);

  const std::map<TensorId, Layout>& layouts() const { return layouts_; }
  // Chooses; true: less is moved than now.
  bool choose();
  // What was chosen. choose() must have returned true. Operators of the graph change, so do tensors.
  void apply(Graph& graph);

 private:
  struct Member {
    OpId op;
    const LayoutRule* rule;
    Relayout layouts;
    int node = -1;        // in the cut
    bool turned = false;  // works in the other layout
  };
  bool may_have(TensorId tensor, const Layout& layout) const;
  void spread(TensorId tensor, std::vector<TensorId>& open, std::vector<OpId>& later);
  void visit(OpId op, std::vector<TensorId>& open);
  bool is_valid(const Relayout& layouts, OpId op) const;
  bool is_turned(OpId op) const;
  bool is_taken(TensorId tensor) const;
  std::int64_t add_users(class MinCut& cut, TensorId tensor, int any, int all);
  std::int64_t add_producer(class MinCut& cut, TensorId tensor, int any, int all);
  void provide(Graph& graph, TensorId tensor);
  void rewire_conversions(Graph& graph, TensorId tensor, OpId near);
  void rewire_member(Graph& graph, const Member& member);

  const Graph* graph_;
  std::map<TensorId, Layout> layouts_;
  std::vector<Member> members_;
  std::map<OpId, std::size_t> member_of_;
  std::map<OpId, bool> refused_;
  // Conversions at the border: those that read a tensor of the region, and whether they shall read the other form.
  struct Reader {
    OpId op;
    int node = -1;
    bool turned = false;
  };
  std::map<OpId, Reader> readers_;
  // While applying: each tensor in the other layout, and those of which both forms are needed.
  std::map<TensorId, TensorId> others_;
  std::vector<TensorId> both_;
};

}  // namespace reef::passes
