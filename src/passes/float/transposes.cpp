// SPDX-License-Identifier: Apache-2.0
// Moves TRANSPOSE, and RESHAPE that adds or removes axes of size 1, to where the least is moved: until they meet
// their opposites and vanish, or to where the tensor is smallest. See layout_region.h for how that is decided.
//
// Every application makes the sum of what all conversions cost smaller, so this ends.
#include <set>

#include "passes/float/layout_region.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostWork = 2'000'000;  // tensors looked at, so that no graph takes for ever

// Regions that were looked at and are best as they are; valid until the graph changes.
using Known = std::set<std::pair<TensorId, Layout>>;

bool improve(Graph& graph, TensorId seed, const Layout& layout, Known& known, std::size_t& work) {
  if (graph.is_constant(seed) || known.contains({seed, layout})) return false;
  LayoutRegion region(graph, seed, layout);
  work += 1 + region.layouts().size();
  if (region.choose()) {
    region.apply(graph);
    graph.sweep();
    known.clear();
    return true;
  }
  for (const auto& [tensor, its_layout] : region.layouts()) known.emplace(tensor, its_layout);
  return false;
}

int transposes_whole(Graph& graph) {
  int changes = 0;
  std::size_t work = 0;
  Known known;
  for (OpId op = 0; op < graph.op_slots() && work < kMostWork; ++op) {
    if (!graph.is_alive(op)) continue;
    const auto conversion = conversion_of(graph, op);
    if (!conversion) continue;
    const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
    if (is_identity(*conversion, graph.shape(x))) continue;
    const Layout back = inverse(*conversion, graph.shape(x).rank());
    if (improve(graph, y, back, known, work) || improve(graph, x, *conversion, known, work)) ++changes;
  }
  return changes;
}

}  // namespace

constinit const Pass transposes_float_pass = {
    .name = "transposes",
    .summary = "TRANSPOSE and RESHAPE of axes of size 1 move to where they cancel or cost least.",
    .safety = Safety::kRounding,
    .whole = transposes_whole};

}  // namespace reef::passes
