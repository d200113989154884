// SPDX-License-Identifier: Apache-2.0
// Three passes over the operators. The first applies every rule but reshapes that cut or merge axes, so that what must
// stay whole is known; the second decides for each of those which part carries units; the third fixes what the model's
// users see. A rule that meets shapes it does not expect fixes all tensors of the operator: that loses a chance to
// prune, never soundness, which prune::remove_units checks again by inferring all shapes.
#include "prune/axis_rules.h"

#include <algorithm>
#include <string_view>

#include "ir/constants.h"
#include "ir/uses.h"
#include "ops/registry.h"
#include "prune/moved_axes.h"

namespace reef::prune {
namespace {

struct Site {
  const ir::Model& model;
  const ir::Operator& op;
  Axes& axes;

  const ir::Tensor& tensor(std::int32_t t) const { return model.subgraphs[0].tensors[reef::at(t)]; }
  bool has_input(std::size_t i) const { return i < op.inputs.size() && op.inputs[i] >= 0; }
  void fix_all() const {
    for (const std::int32_t t : op.inputs) axes.fix_all(t);
    for (const std::int32_t t : op.outputs) axes.fix_all(t);
  }
  // All tensors named have nodes and the given rank (-1: any).
  bool are_known(std::initializer_list<std::pair<std::int32_t, int>> tensors) const {
    return std::all_of(tensors.begin(), tensors.end(), [&](const auto& each) {
      return axes.has(each.first) && (each.second < 0 || axes.rank(each.first) == each.second);
    });
  }
};

// True: the rule held. False: the shapes are not as expected.
using Rule = bool (*)(const Site&);

// Every axis of a pixel grid but the channels stays whole.
void fix_grid(const Site& site, std::int32_t t) {
  for (int axis = 0; axis < site.axes.rank(t) - 1; ++axis) site.axes.fix_axis(t, axis);
}

bool join_bias(const Site& site, std::size_t place, std::int32_t output, int axis) {
  if (!site.has_input(place)) return true;
  const std::int32_t bias = site.op.inputs[place];
  if (!site.are_known({{bias, 1}}) || site.axes.size(bias, 0) != site.axes.size(output, axis)) return false;
  site.axes.join_axes(bias, 0, output, axis);
  return true;
}

bool convolution(const Site& site) {
  const std::int32_t x = site.op.inputs[0], w = site.op.inputs[1], y = site.op.outputs[0];
  Axes& axes = site.axes;
  if (!site.are_known({{x, 4}, {w, 4}, {y, 4}}) || axes.size(w, 0) != axes.size(y, 3)) return false;
  const std::int32_t channels = axes.size(x, 3), each = axes.size(w, 3);
  if (each < 1 || channels % each != 0) return false;
  const std::int32_t groups = channels / each, outputs = axes.size(y, 3);
  if (outputs % groups != 0) return false;
  fix_grid(site, x);
  fix_grid(site, y);
  axes.fix_axis(w, 1);
  axes.fix_axis(w, 2);
  axes.join_axes(w, 0, y, 3);
  // Every group loses the same channels, because the weights have one input axis for all groups.
  for (std::int32_t i = 0; i < channels; ++i) axes.join(x, 3, i, w, 3, i % each);
  const std::int32_t outputs_each = outputs / groups;
  for (std::int32_t i = outputs_each; i < outputs; ++i) axes.join(y, 3, i, y, 3, i % outputs_each);
  return join_bias(site, 2, y, 3);
}

bool depthwise(const Site& site) {
  const std::int32_t x = site.op.inputs[0], w = site.op.inputs[1], y = site.op.outputs[0];
  Axes& axes = site.axes;
  if (!site.are_known({{x, 4}, {w, 4}, {y, 4}}) || axes.size(w, 3) != axes.size(y, 3)) return false;
  const std::int32_t channels = axes.size(x, 3), outputs = axes.size(y, 3);
  if (channels < 1 || outputs % channels != 0) return false;
  fix_grid(site, x);
  fix_grid(site, y);
  fix_grid(site, w);
  axes.join_axes(w, 3, y, 3);
  for (std::int32_t i = 0; i < outputs; ++i) axes.join(x, 3, i / (outputs / channels), y, 3, i);
  return join_bias(site, 2, y, 3);
}

bool transposed_convolution(const Site& site) {
  const std::int32_t w = site.op.inputs[1], x = site.op.inputs[2], y = site.op.outputs[0];
  Axes& axes = site.axes;
  if (!site.are_known({{x, 4}, {w, 4}, {y, 4}})) return false;
  if (axes.size(w, 0) != axes.size(y, 3) || axes.size(w, 3) != axes.size(x, 3)) return false;
  axes.fix_all(site.op.inputs[0]);
  fix_grid(site, x);
  fix_grid(site, y);
  axes.fix_axis(w, 1);
  axes.fix_axis(w, 2);
  axes.join_axes(w, 0, y, 3);
  axes.join_axes(w, 3, x, 3);
  return join_bias(site, 3, y, 3);
}

// The input is flattened to rows of the weights' second axis: the innermost axes that make up a row.
bool fully_connected(const Site& site) {
  const std::int32_t x = site.op.inputs[0], w = site.op.inputs[1], y = site.op.outputs[0];
  Axes& axes = site.axes;
  if (!site.are_known({{x, -1}, {w, 2}, {y, -1}}) || axes.rank(x) < 1 || axes.rank(y) < 1) return false;
  const int last = axes.rank(x) - 1, result = axes.rank(y) - 1;
  if (axes.size(w, 0) != axes.size(y, result)) return false;
  const std::int32_t inputs = axes.size(w, 1), channels = axes.size(x, last);
  if (channels < 1 || inputs % channels != 0) return false;
  // Rows pass if they keep their axes; where several axes make up one row, these are positions and stay whole.
  const bool keeps_axes = inputs == channels && axes.rank(x) == axes.rank(y);
  for (int axis = 0; axis < last; ++axis) {
    if (keeps_axes && axes.size(x, axis) == axes.size(y, axis)) {
      axes.join_axes(x, axis, y, axis);
    } else {
      axes.fix_axis(x, axis);
      if (axis < result) axes.fix_axis(y, axis);
    }
  }
  for (int axis = last; axis < result; ++axis) axes.fix_axis(y, axis);
  for (std::int32_t i = 0; i < inputs; ++i) axes.join(x, last, i % channels, w, 1, i);
  axes.join_axes(w, 0, y, result);
  return join_bias(site, 2, y, result);
}

bool matrix_product(const Site& site) {
  const std::int32_t a = site.op.inputs[0], b = site.op.inputs[1], y = site.op.outputs[0];
  Axes& axes = site.axes;
  if (!site.are_known({{a, -1}, {b, -1}, {y, -1}})) return false;
  const int ra = axes.rank(a), rb = axes.rank(b), ry = axes.rank(y);
  if (ra < 2 || rb < 2 || ry < 2) return false;
  const bool flip_a = site.op.attributes.get_bool("adj_x"), flip_b = site.op.attributes.get_bool("adj_y");
  const int rows = ra - (flip_a ? 1 : 2), inner_a = ra - (flip_a ? 2 : 1);
  const int inner_b = rb - (flip_b ? 1 : 2), columns = rb - (flip_b ? 2 : 1);
  if (axes.size(a, inner_a) != axes.size(b, inner_b) || axes.size(a, rows) != axes.size(y, ry - 2) ||
      axes.size(b, columns) != axes.size(y, ry - 1)) {
    return false;
  }
  axes.join_axes(a, inner_a, b, inner_b);
  axes.join_axes(a, rows, y, ry - 2);
  axes.join_axes(b, columns, y, ry - 1);
  for (const auto& [t, rank] : {std::pair(a, ra), std::pair(b, rb)}) {
    for (int k = 3; k <= rank; ++k) {
      if (k <= ry && axes.size(t, rank - k) == axes.size(y, ry - k)) axes.join_axes(t, rank - k, y, ry - k);
    }
  }
  return true;
}

bool channels_pass(const Site& site) {
  const std::int32_t x = site.op.inputs[0], y = site.op.outputs[0];
  if (!site.are_known({{x, 4}, {y, 4}}) || site.axes.size(x, 3) != site.axes.size(y, 3)) return false;
  fix_grid(site, x);
  fix_grid(site, y);
  site.axes.join_axes(x, 3, y, 3);
  return true;
}

bool last_axis_whole(const Site& site) {
  const std::int32_t x = site.op.inputs[0], y = site.op.outputs[0];
  if (!site.are_known({{x, -1}, {y, -1}}) || site.axes.rank(x) != site.axes.rank(y) || site.axes.rank(x) < 1) {
    return false;
  }
  for (int axis = 0; axis < site.axes.rank(x); ++axis) {
    if (site.axes.size(x, axis) != site.axes.size(y, axis)) return false;
    site.axes.join_axes(x, axis, y, axis);
  }
  site.axes.fix_axis(x, site.axes.rank(x) - 1);
  return true;
}

// Shapes are aligned at their last axes; an axis of size 1 is spread over the result and carries no unit of it.
bool elementwise(const Site& site) {
  if (site.op.outputs.size() != 1 || !site.axes.has(site.op.outputs[0])) return false;
  const std::int32_t y = site.op.outputs[0];
  const int ry = site.axes.rank(y);
  const bool may_be_shorter = ops::form_of(site.op) != ops::Form::kElementwise;
  for (const std::int32_t x : site.op.inputs) {
    if (x < 0) continue;
    if (!site.axes.has(x)) return false;
    const int rx = site.axes.rank(x);
    if (rx > ry || (rx != ry && rx != 0 && !may_be_shorter)) return false;
    for (int k = 1; k <= rx; ++k) {
      const std::int32_t of_x = site.axes.size(x, rx - k), of_y = site.axes.size(y, ry - k);
      if (of_x == of_y) {
        site.axes.join_axes(x, rx - k, y, ry - k);
      } else if (of_x != 1) {
        return false;
      }
    }
  }
  return true;
}

bool reduction(const Site& site) {
  if (site.op.inputs.size() < 2 || site.op.outputs.size() != 1) return false;
  const std::int32_t x = site.op.inputs[0], y = site.op.outputs[0];
  if (!site.are_known({{x, -1}, {y, -1}})) return false;
  const std::optional<std::vector<std::int64_t>> list =
      ir::constant_integers(site.model, site.tensor(site.op.inputs[1]));
  if (!list) return false;
  const int rank = site.axes.rank(x);
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : *list) {
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) return false;
    reduced[reef::at(at)] = true;
  }
  const bool keeps = site.axes.rank(y) == rank;
  int to = 0;
  for (int axis = 0; axis < rank; ++axis) {
    if (reduced[reef::at(axis)]) {
      site.axes.fix_axis(x, axis);
      if (keeps) ++to;
      continue;
    }
    if (to >= site.axes.rank(y) || site.axes.size(y, to) != site.axes.size(x, axis)) return false;
    site.axes.join_axes(x, axis, y, to++);
  }
  return true;
}

// Moves that take each axis of a result from one axis of an operand.
bool move(const Site& site) {
  const std::optional<std::vector<MovedAxis>> moved = moved_axes(site.model, site.op);
  if (!moved) return false;
  for (const MovedAxis& each : *moved) {
    for (std::size_t i = 0; i < each.from.size(); ++i) {
      const auto at = static_cast<std::int32_t>(i);
      if (each.from[i] == MovedAxis::kPadding) {
        site.axes.fix(each.output, each.output_axis, at);
      } else if (each.from[i] >= 0) {
        site.axes.join(each.output, each.output_axis, at, each.input, each.input_axis, each.from[i]);
      }
    }
  }
  for (const auto& [tensor, axis] : whole_axes(site.model, site.op, *moved)) site.axes.fix_axis(tensor, axis);
  return true;
}

// Stretches of axes of two shapes that have the same number of elements: axes [from_begin, from_end) of one are axes
// [to_begin, to_end) of the other.
struct Stretch {
  int from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
};

std::vector<Stretch> stretches(const Axes& axes, std::int32_t x, std::int32_t y) {
  std::vector<Stretch> result;
  int i = 0, j = 0;
  const int rx = axes.rank(x), ry = axes.rank(y);
  while (i < rx || j < ry) {
    Stretch each{i, i, j, j};
    std::int64_t a = 1, b = 1;
    if (i < rx) a = axes.size(x, i++);
    if (j < ry) b = axes.size(y, j++);
    while (a != b) {
      if (a < b && i < rx) {
        a *= axes.size(x, i++);
      } else if (b < a && j < ry) {
        b *= axes.size(y, j++);
      } else {
        return {};  // an empty tensor
      }
    }
    each.from_end = i, each.to_end = j;
    result.push_back(each);
  }
  return result;
}

// The single axis `whole` of tensor `one` is the axes [begin, end) of tensor `several`.
void join_parts(Axes& axes, HeadUnits heads, std::int32_t one, int whole, std::int32_t several, int begin, int end) {
  std::vector<int> open;
  for (int axis = begin; axis < end; ++axis) {
    if (axes.size(several, axis) != 1 && !axes.is_axis_fixed(several, axis)) open.push_back(axis);
  }
  if (open.empty()) return axes.fix_axis(one, whole);
  const int carrier = heads == HeadUnits::kWholeHeads ? open.front() : open.back();
  std::int64_t inner = 1;
  for (int axis = end; axis-- > carrier + 1;) inner *= axes.size(several, axis);
  for (int axis = begin; axis < end; ++axis) {
    if (axis != carrier && axes.size(several, axis) != 1) axes.fix_axis(several, axis);
  }
  for (std::int32_t i = 0; i < axes.size(one, whole); ++i) {
    axes.join(one, whole, i, several, carrier, static_cast<std::int32_t>(i / inner % axes.size(several, carrier)));
  }
}

void reshape(const Site& site, HeadUnits heads, bool only_single) {
  const std::int32_t x = site.op.inputs[0], y = site.op.outputs[0];
  Axes& axes = site.axes;
  const std::vector<Stretch> all = site.are_known({{x, -1}, {y, -1}}) ? stretches(axes, x, y) : std::vector<Stretch>();
  if (all.empty()) {
    axes.fix_all(x);
    axes.fix_all(y);
    return;
  }
  const auto larger_than_one = [&](std::int32_t t, int begin, int end) {
    std::vector<int> result;
    for (int axis = begin; axis < end; ++axis) {
      if (axes.size(t, axis) != 1) result.push_back(axis);
    }
    return result;
  };
  for (const Stretch& each : all) {
    const std::vector<int> from = larger_than_one(x, each.from_begin, each.from_end);
    const std::vector<int> to = larger_than_one(y, each.to_begin, each.to_end);
    if (from.size() == 1 && to.size() == 1) {
      if (only_single) axes.join_axes(x, from[0], y, to[0]);
    } else if (only_single) {
      continue;
    } else if (from.size() == 1) {
      join_parts(axes, heads, x, from[0], y, each.to_begin, each.to_end);
    } else if (to.size() == 1) {
      join_parts(axes, heads, y, to[0], x, each.from_begin, each.from_end);
    } else {
      for (const int axis : from) axes.fix_axis(x, axis);
      for (const int axis : to) axes.fix_axis(y, axis);
    }
  }
}

Rule rule_of(const ir::Operator& op) {
  struct Named {
    std::string_view type;
    Rule rule;
  };
#define AXIS_RULE(type, rule) Named{#type, rule},
  static constexpr Named kRules[] = {
#include "prune/axis_rules.def"
  };
#undef AXIS_RULE
  for (const Named& each : kRules) {
    if (each.type == op.type) return each.rule;
  }
  if (ops::is_elementwise(op)) return elementwise;
  if (ops::form_of(op) == ops::Form::kReduction) return reduction;
  if (ops::form_of(op) == ops::Form::kMove) return move;
  return nullptr;
}

// Tensors that something beside the operators of this graph knows the shape of.
void fix_outside(const ir::Model& model, Axes& axes) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses uses(model);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto t = static_cast<std::int32_t>(i);
    const ir::Tensor& tensor = graph.tensors[i];
    const bool has_axis_scales = tensor.quantization.scale.size() > 1 || tensor.quantization.min.size() > 1;
    if (uses.is_input(t) || uses.is_output(t) || tensor.is_variable || has_axis_scales || tensor.sparsity ||
        tensor.external_buffer != 0) {
      axes.fix_all(t);
    }
  }
}

}  // namespace

void apply_axis_rules(const ir::Model& model, HeadUnits heads, Axes& axes) {
  const std::vector<ir::Operator>& operators = model.subgraphs[0].operators;
  fix_outside(model, axes);
  for (const ir::Operator& op : operators) {
    const Site site{model, op, axes};
    if (ops::has_same_bytes(op)) {
      reshape(site, heads, /*only_single=*/true);
      continue;
    }
    const ops::OpDef* def = ops::find_op(op);
    const Rule rule = def == nullptr || !ops::check_arity(*def, op).ok() ? nullptr : rule_of(op);
    if (rule == nullptr || !rule(site)) site.fix_all();
  }
  for (const ir::Operator& op : operators) {
    if (ops::has_same_bytes(op)) reshape({model, op, axes}, heads, /*only_single=*/false);
  }
}

}  // namespace reef::prune
