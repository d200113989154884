// SPDX-License-Identifier: Apache-2.0
#include "passes/float/layout_region.h"

#include <algorithm>

#include "ir/op.h"
#include "passes/float/min_cut.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kCopyCost = 16;      // as a RESHAPE, see conversion_cost
constexpr std::size_t kMostMembers = 4096;  // of one region, so that no graph takes for ever

// Operators on more axes than usual are refused by runtimes.
bool is_possible(const Layout& layout, const ir::Shape& shape) {
  return fits_shape(layout, shape) && static_cast<int>(layout.size()) <= std::max(4, shape.rank());
}

}  // namespace

LayoutRegion::LayoutRegion(const Graph& graph, TensorId seed, const Layout& layout) : graph_(&graph) {
  if (graph.is_constant(seed) || !may_have(seed, layout)) return;
  layouts_[seed] = layout;
  std::vector<TensorId> open = {seed};
  std::vector<OpId> later;  // RESHAPEs: they take what others want before they make something up
  while (!open.empty() || !later.empty()) {
    if (open.empty()) {
      const OpId op = later.back();
      later.pop_back();
      visit(op, open);
      continue;
    }
    const TensorId tensor = open.back();
    open.pop_back();
    spread(tensor, open, later);
  }
}

// A conversion's operand and result must not both be in the region: each would count on the other staying.
bool LayoutRegion::may_have(TensorId tensor, const Layout& layout) const {
  if (!is_possible(layout, graph_->shape(tensor)) || !graph_->can_lay_out(tensor, layout)) return false;
  const OpId producer = graph_->producer(tensor);
  if (producer != kNone && conversion_of(*graph_, producer) && layouts_.contains(graph_->op(producer).inputs[0])) {
    return false;
  }
  for (const OpId user : graph_->users(tensor)) {
    if (conversion_of(*graph_, user) && layouts_.contains(graph_->op(user).outputs[0])) return false;
  }
  return true;
}

void LayoutRegion::spread(TensorId tensor, std::vector<TensorId>& open, std::vector<OpId>& later) {
  const auto meet = [&](OpId op) {
    if (op == kNone || member_of_.contains(op) || refused_.contains(op)) return;
    if (graph_->is(op, Op::RESHAPE)) {
      later.push_back(op);
    } else {
      visit(op, open);
    }
  };
  meet(graph_->producer(tensor));
  for (const OpId user : graph_->users(tensor)) meet(user);
}

bool LayoutRegion::is_valid(const Relayout& layouts, OpId op) const {
  const ir::Operator& it = graph_->op(op);
  const auto is_valid_for = [&](const std::optional<Layout>& layout, TensorId tensor) {
    if (!layout) return true;
    const auto known = layouts_.find(tensor);
    if (!fits_shape(*layout, graph_->shape(tensor))) return false;
    if (known != layouts_.end()) return is_same(known->second, *layout, graph_->shape(tensor));
    if (graph_->is_constant(tensor)) {
      return is_possible(*layout, graph_->shape(tensor)) && graph_->can_lay_out(tensor, *layout);
    }
    return may_have(tensor, *layout);
  };
  for (std::size_t i = 0; i < it.inputs.size(); ++i) {
    if (!is_valid_for(layouts.inputs[i], it.inputs[i])) return false;
    for (std::size_t k = 0; k < it.inputs.size(); ++k) {
      if (k < i && it.inputs[k] == it.inputs[i] && layouts.inputs[k] != layouts.inputs[i]) return false;
      // One operand is a conversion of the other.
      const OpId producer = it.inputs[k] < 0 ? kNone : graph_->producer(it.inputs[k]);
      if (producer != kNone && layouts.inputs[i] && layouts.inputs[k] && conversion_of(*graph_, producer) &&
          graph_->op(producer).inputs[0] == it.inputs[i]) {
        return false;
      }
    }
  }
  for (std::size_t i = 0; i < it.outputs.size(); ++i) {
    if (!is_valid_for(layouts.outputs[i], it.outputs[i])) return false;
  }
  return true;
}

void LayoutRegion::visit(OpId op, std::vector<TensorId>& open) {
  if (member_of_.contains(op) || refused_.contains(op)) return;
  refused_[op] = true;
  if (members_.size() >= kMostMembers || !graph_->is_sound(op) || conversion_of(*graph_, op)) return;
  const LayoutRule* rule = find_layout_rule(*graph_, op);
  if (rule == nullptr) return;
  const ir::Operator& it = graph_->op(op);
  Relayout layouts;
  layouts.inputs.resize(it.inputs.size());
  layouts.outputs.resize(it.outputs.size());
  const auto known = [&](TensorId tensor) {
    const auto found = tensor < 0 ? layouts_.end() : layouts_.find(tensor);
    return found == layouts_.end() ? std::nullopt : std::optional(found->second);
  };
  for (std::size_t i = 0; i < it.inputs.size(); ++i) layouts.inputs[i] = known(it.inputs[i]);
  for (std::size_t i = 0; i < it.outputs.size(); ++i) layouts.outputs[i] = known(it.outputs[i]);
  if (!rule->complete(*graph_, op, layouts) || !is_valid(layouts, op)) return;
  refused_.erase(op);
  member_of_[op] = members_.size();
  const auto take = [&](const std::optional<Layout>& layout, TensorId tensor) {
    if (layout && !graph_->is_constant(tensor) && layouts_.emplace(tensor, *layout).second) open.push_back(tensor);
  };
  for (std::size_t i = 0; i < it.inputs.size(); ++i) take(layouts.inputs[i], it.inputs[i]);
  for (std::size_t i = 0; i < it.outputs.size(); ++i) take(layouts.outputs[i], it.outputs[i]);
  members_.push_back({op, rule, std::move(layouts)});
}

// The tensor's other form is there already and is an input or an output of the graph.
bool LayoutRegion::is_taken(TensorId tensor) const {
  const OpId producer = graph_->producer(tensor);
  const auto conversion = producer == kNone ? std::nullopt : conversion_of(*graph_, producer);
  if (!conversion) return false;
  const TensorId source = graph_->op(producer).inputs[0];
  return is_identity(compose(*conversion, layouts_.at(tensor)), graph_->shape(source)) &&
         (graph_->producer(source) == kNone || graph_->is_graph_output(source));
}

// The users' part of a tensor's costs in the cut; returns what they cost now.
std::int64_t LayoutRegion::add_users(MinCut& cut, TensorId tensor, int any, int all) {
  const Layout& layout = layouts_.at(tensor);
  const ir::Shape& shape = graph_->shape(tensor);
  const auto add = [&](int node) {
    cut.add_edge(node, any, MinCut::kNever);
    cut.add_edge(all, node, MinCut::kNever);
  };
  std::int64_t now = 0;
  bool gives_output = false;
  if (graph_->is_graph_output(tensor)) add(MinCut::kSink);
  for (const OpId user : graph_->users(tensor)) {
    if (const auto member = member_of_.find(user); member != member_of_.end()) {
      add(members_[member->second].node);
      continue;
    }
    const auto conversion = conversion_of(*graph_, user);
    if (!conversion || graph_->op(user).inputs[0] != tensor) {
      add(MinCut::kSink);
      continue;
    }
    Reader& reader = readers_[user];
    reader = {user, cut.add_node(), false};
    const Layout rest = compose(inverse(layout, shape.rank()), *conversion);
    cut.add_edge(MinCut::kSource, reader.node, conversion_cost(*conversion, shape));
    std::int64_t cost = conversion_cost(rest, laid_out(shape, layout));
    if (cost == 0 && graph_->is_graph_output(graph_->op(user).outputs[0])) {
      // An output is a tensor of its own: of several, and of one that there is already, a copy is made.
      if (gives_output || is_taken(tensor)) cost = kCopyCost;
      gives_output = true;
    }
    cut.add_edge(reader.node, MinCut::kSink, cost);
    add(reader.node);
    now += conversion_cost(*conversion, shape);
  }
  return now;
}

// The same for who computes it.
std::int64_t LayoutRegion::add_producer(MinCut& cut, TensorId tensor, int any, int all) {
  const Layout& layout = layouts_.at(tensor);
  const OpId producer = graph_->producer(tensor);
  const auto conversion = producer == kNone ? std::nullopt : conversion_of(*graph_, producer);
  if (conversion) {
    const ir::Shape& source = graph_->shape(graph_->op(producer).inputs[0]);
    const std::int64_t cost = conversion_cost(*conversion, source);
    cut.add_edge(MinCut::kSource, all, cost);
    cut.add_edge(any, MinCut::kSink, conversion_cost(compose(*conversion, layout), source));
    return cost;
  }
  const auto member = producer == kNone ? member_of_.end() : member_of_.find(producer);
  const int node = member == member_of_.end() ? MinCut::kSink : members_[member->second].node;
  const std::int64_t cost = conversion_cost(layout, graph_->shape(tensor));
  cut.add_edge(node, all, cost);
  cut.add_edge(any, node, cost);
  return 0;
}

// On the source's side: members and conversions that work on the other layout. Of a tensor, `any` if any user does,
// `all` if all do. A conversion is needed where the producer does and not all users, or where it does not and any user.
bool LayoutRegion::choose() {
  MinCut cut;
  for (Member& member : members_) member.node = cut.add_node();
  std::int64_t now = 0;
  for (const auto& [tensor, layout] : layouts_) {
    const int any = cut.add_node(), all = cut.add_node();
    now += add_users(cut, tensor, any, all);
    now += add_producer(cut, tensor, any, all);
  }
  if (cut.solve() >= now) return false;
  for (Member& member : members_) member.turned = cut.is_source_side(member.node);
  for (auto& [op, reader] : readers_) reader.turned = cut.is_source_side(reader.node);
  return true;
}

bool LayoutRegion::is_turned(OpId op) const {
  if (const auto found = member_of_.find(op); found != member_of_.end()) return members_[found->second].turned;
  const auto found = readers_.find(op);
  return found != readers_.end() && found->second.turned;
}

// Sees to it that the tensor's other form is there if anybody wants it. Members still name the old one.
void LayoutRegion::provide(Graph& graph, TensorId tensor) {
  const Layout& layout = layouts_.at(tensor);
  const std::vector<OpId> users = graph.users(tensor);
  const OpId producer = graph.producer(tensor);
  const bool is_other = producer != kNone && is_turned(producer);
  bool needs_this = graph.is_graph_output(tensor), needs_other = false;
  for (const OpId user : users) (is_turned(user) ? needs_other : needs_this) = true;
  if (!is_other && !needs_other) return;
  if (is_identity(layout, graph.shape(tensor))) {
    others_[tensor] = tensor;
    return;
  }
  const OpId near = producer != kNone ? producer : users[0];
  const auto conversion = producer == kNone ? std::nullopt : conversion_of(graph, producer);
  if (is_other) {
    others_[tensor] = graph.add_in_layout(tensor, layout);  // which the member will compute
    if (needs_this) both_.push_back(tensor);
  } else if (conversion) {
    const TensorId source = graph.op(producer).inputs[0];
    const Layout whole = compose(*conversion, layout);
    others_[tensor] = is_identity(whole, graph.shape(source)) ? source : graph.convert(near, source, whole);
  } else {
    others_[tensor] = graph.convert(near, tensor, layout);
  }
  rewire_conversions(graph, tensor, near);
}

// Conversions that shall read the other form; those that give just that are not needed any more.
void LayoutRegion::rewire_conversions(Graph& graph, TensorId tensor, OpId near) {
  const ir::Shape shape = graph.shape(tensor);
  const Layout back = inverse(layouts_.at(tensor), shape.rank());
  const std::vector<OpId> users = graph.users(tensor);
  for (const OpId user : users) {
    if (!readers_.contains(user) || !is_turned(user)) continue;
    const TensorId other = others_.at(tensor), result = graph.op(user).outputs[0];
    const Layout rest = compose(back, *conversion_of(graph, user));
    graph.remove(user);
    if (!is_identity(rest, graph.shape(other))) {
      graph.convert(near, other, rest, result);
      continue;
    }
    const bool is_unmade = graph.producer(other) == kNone && !graph.is_graph_input(other) && !graph.is_constant(other);
    TensorId left = kNone;
    if (!graph.is_graph_output(result)) {
      left = graph.replace(result, other);
    } else if (is_unmade && !graph.is_graph_output(other)) {
      left = graph.replace(other, result);  // the member computes the output itself
    } else if (!is_unmade) {
      left = graph.replace(result, other);
    }
    if (left == kNone) {  // a copy of an input, or of another output
      graph.reshape(near, other, graph.shape(result), result);
      continue;
    }
    for (auto& [each, known] : others_) {
      if (known == result || known == other) known = left;
    }
  }
}

void LayoutRegion::rewire_member(Graph& graph, const Member& member) {
  std::vector<TensorId> inputs = graph.op(member.op).inputs, outputs = graph.op(member.op).outputs;
  for (std::size_t i = 0; i < member.layouts.inputs.size(); ++i) {
    if (!member.layouts.inputs[i]) continue;
    if (const auto other = others_.find(inputs[i]); other != others_.end()) {
      inputs[i] = other->second;
    } else if (graph.is_constant(inputs[i]) && !is_identity(*member.layouts.inputs[i], graph.shape(inputs[i]))) {
      inputs[i] = graph.add_in_layout(inputs[i], *member.layouts.inputs[i]);
    }
  }
  for (TensorId& output : outputs) {
    if (const auto other = others_.find(output); other != others_.end()) output = other->second;
  }
  graph.set_inputs(member.op, std::move(inputs));
  graph.set_outputs(member.op, std::move(outputs));
}

void LayoutRegion::apply(Graph& graph) {
  for (const Member& member : members_) {
    if (member.turned) member.rule->apply(graph, member.op, member.layouts);
  }
  for (const auto& [tensor, layout] : layouts_) provide(graph, tensor);
  for (const Member& member : members_) {
    if (member.turned) rewire_member(graph, member);
  }
  for (const TensorId tensor : both_) {
    const TensorId other = others_.at(tensor);
    const Layout back = inverse(layouts_.at(tensor), graph.shape(tensor).rank());
    graph.convert(graph.producer(other), other, back, tensor);
  }
}

}  // namespace reef::passes
