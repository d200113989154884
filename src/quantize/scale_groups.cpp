// SPDX-License-Identifier: Apache-2.0
#include "quantize/scale_groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/op.h"
#include "quantize/graph_constants.h"
#include "quantize/masks.h"
#include "quantize/scale_limits.h"

namespace reef::quantize {
namespace {

constexpr float kMuchWider = 4;        // a group's range over a member's, at which another reader counts
constexpr float kMaskedConstant = 64;  // a constant's range over the part of it that makes a difference to the result
constexpr double kFinestSum = 0x1p-12, kFinestProduct = 0x1p-12;  // a result's step over those of its operands
constexpr float kFitTolerance = 1.02f;  // a fixed range may be exceeded by this: it saturates by less than three steps

float span_of(const Range& range) { return range.max - range.min; }

Range range_of(const Affine& affine, Mode mode) {
  const int low = mode == Mode::kInt16x8 ? -32768 : -128, high = mode == Mode::kInt16x8 ? 32767 : 127;
  return {affine.scale * static_cast<float>(low - affine.zero_point),
          affine.scale * static_cast<float>(high - affine.zero_point)};
}

class Groups {
 public:
  Groups(const ir::Model& model, const std::vector<Decision>& decisions, const std::vector<Range>& ranges, Mode mode)
      : model_(model), graph_(model.subgraphs[0]), index_(model), decisions_(decisions), mode_(mode) {
    const std::size_t count = graph_.tensors.size();
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), 0);
    range_ = ranges;
    fixed_.resize(count);
    is_used_.assign(count, false);
  }

  Scales run(const std::vector<std::pair<std::int32_t, int>>& apart) {
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (decisions_[i].treatment == Treatment::kInteger) mark(static_cast<std::int32_t>(i));
    }
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (is_same_scale(i)) join(static_cast<std::int32_t>(i), apart);
    }
    keep_usable();
    return collect();
  }

 private:
  bool is_same_scale(std::size_t op) const {
    return decisions_[op].treatment == Treatment::kInteger && decisions_[op].rule->kind == RuleKind::kSameScale;
  }
  bool is_float(std::int32_t t) const { return t >= 0 && graph_.tensors[at(t)].type == ir::DataType::kFloat32; }
  bool is_constant(std::int32_t t) const { return is_float_constant(model_, graph_.tensors[at(t)]); }
  // Whether input `position` of the operator is an activation, not weights or bias.
  bool is_activation(const ir::Operator& op, const OpRule& rule, int position) const {
    const std::int32_t t = op.inputs[at(position)];
    if (!is_float(t)) return false;
    return rule.is_activation(position);
  }

  void mark(std::int32_t number) {
    const ir::Operator& op = graph_.operators[at(number)];
    const OpRule& rule = *decisions_[at(number)].rule;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (is_activation(op, rule, static_cast<int>(i)) && !is_constant(op.inputs[i])) use(op.inputs[i]);
    }
    for (const std::int32_t t : op.outputs) {
      if (!is_float(t)) continue;
      use(t);
      if (rule.kind == RuleKind::kUnit) fixed_[at(t)] = mode_ == Mode::kInt16x8 ? rule.unit16 : rule.unit8;
      // TFLite 2.9 takes the zero point of an LSTM's outputs with the wrong sign.
      if (rule.kind == RuleKind::kRecurrent) make_symmetric(range_[at(t)]);
    }
  }
  static void make_symmetric(Range& range) {
    const float m = std::max(-range.min, range.max);
    range = {-m * 128 / 127, m};  // affine_for then gives zero point 0
  }
  void use(std::int32_t t) { is_used_[at(t)] = true; }

  std::int32_t root(std::int32_t t) {
    while (parent_[at(t)] != t) {
      t = parent_[at(t)] = parent_[at(parent_[at(t)])];
    }
    return t;
  }
  void unite(std::int32_t a, std::int32_t b) {
    a = root(a), b = root(b);
    if (a == b) return;
    const auto ia = static_cast<std::size_t>(a), ib = static_cast<std::size_t>(b);
    parent_[ib] = a;
    range_[ia] = hull(range_[ia], range_[ib]);
    if (!fixed_[ia]) fixed_[ia] = fixed_[ib];
  }
  bool fits(const Affine& fixed, const Range& range) const {
    const Range limits = range_of(fixed, mode_);
    return range.min >= limits.min * kFitTolerance && range.max <= limits.max * kFitTolerance;
  }
  // Whether input `t` of an operator can have the scale of the operator's group.
  bool may_join(std::int32_t t, std::int32_t group) {
    const auto a = static_cast<std::size_t>(root(t)), b = static_cast<std::size_t>(root(group));
    if (a == b) return true;
    if (fixed_[a] && fixed_[b]) return *fixed_[a] == *fixed_[b];
    if (fixed_[a]) return fits(*fixed_[a], range_[b]);
    if (fixed_[b]) return fits(*fixed_[b], range_[a]);
    const bool has_other_readers = index_.consumers(t).size() > 1;
    return !has_other_readers || span_of(range_[b]) <= kMuchWider * span_of(range_[a]);
  }

  void join(std::int32_t number, const std::vector<std::pair<std::int32_t, int>>& apart) {
    const ir::Operator& op = graph_.operators[at(number)];
    std::int32_t group = -1;
    for (const std::int32_t t : op.outputs) {
      if (!is_float(t)) continue;
      if (group >= 0) unite(group, t);
      group = t;
    }
    if (group < 0) return;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t t = op.inputs[i];
      if (!is_float(t) || is_constant(t)) continue;
      const std::pair<std::int32_t, int> edge(number, static_cast<int>(i));
      const bool is_apart = std::find(apart.begin(), apart.end(), edge) != apart.end();
      if (!is_apart && may_join(t, group)) unite(group, t);
    }
  }

  void widen(std::int32_t t, double scale) {
    const auto r = static_cast<std::size_t>(root(t));
    if (!fixed_[r]) range_[r] = at_least(range_[r], scale);
  }

  // Tiny ranges, of a network that was not trained or of values that cancel out, are widened to what kernels can
  // compute: the steps stay far below those of the operands. Ranges only grow, and results stand behind operands.
  void keep_usable() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (is_used_[t]) widen(static_cast<std::int32_t>(t), kSmallestActivationScale);
    }
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (decisions_[i].treatment != Treatment::kInteger) continue;
      const ir::Operator& op = graph_.operators[i];
      const auto step_of = [&](std::int32_t t) -> double {
        if (!is_float(t)) return 0;
        return is_constant(t) ? constant_affine(op, t).scale : affine_of(t).scale;
      };
      if (op.type == Op::SOFTMAX || op.type == Op::LOG_SOFTMAX) {
        const double beta = op.type == Op::SOFTMAX ? op.attributes.get_float("beta", 1) : 1;
        if (beta > 0 && is_float(op.inputs[0])) widen(op.inputs[0], kSmallestSoftmaxScale / std::min(beta, 1.0));
      } else if (op.type == Op::ADD || op.type == Op::SUB || op.type == Op::SQUARED_DIFFERENCE || op.type == Op::MUL) {
        const double a = step_of(op.inputs[0]), b = step_of(op.inputs[1]);
        widen(op.outputs[0], op.type == Op::ADD || op.type == Op::SUB ? std::max(a, b) * kFinestSum
                             : op.type == Op::MUL                     ? a * b * kFinestProduct
                                                                      : std::max(a, b) * std::max(a, b) * kFinestSum);
      }
    }
  }

  Affine affine_of(std::int32_t t) {
    const auto r = static_cast<std::size_t>(root(t));
    return fixed_[r] ? *fixed_[r] : affine_for(range_[r], mode_);
  }

  Range constant_range(std::int32_t t) const {
    Range range;
    for (const float v : float_values(model_, graph_.tensors[at(t)])) {
      if (!is_masked(v)) range = hull(range, {v, v});
    }
    return range;
  }
  // A constant operand of an operator that wants no equal scales. The second matrix of a product is weights: symmetric.
  Affine constant_affine(const ir::Operator& op, std::int32_t t) {
    Range range = constant_range(t);
    if (op.inputs.size() == 2 && is_float(op.outputs[0])) range = useful_constant(op, t, range);
    if (op.type != Op::BATCH_MATMUL) return affine_for(at_least(range, kSmallestActivationScale), mode_);
    const float m = std::max(-range.min, range.max);
    return {m > 0 ? m / 127 : 1.0f, 0};
  }

  // Masks among a constant's values only push the result beyond its range: they are cut to where they do that.
  Range useful_constant(const ir::Operator& op, std::int32_t t, const Range& range) {
    const std::size_t position = op.inputs[0] == t ? 0 : 1;
    const std::int32_t other = op.inputs[1 - position];
    if (!is_float(other) || is_constant(other)) return range;
    const Range result = range_of(affine_of(op.outputs[0]), mode_), beside = range_of(affine_of(other), mode_);
    const Range useful = useful_range(op, position, range, beside, result, affine_of(other).scale);
    return span_of(range) > kMaskedConstant * span_of(useful) ? useful : range;
  }

  Scales collect() {
    Scales scales;
    scales.tensors.resize(graph_.tensors.size());
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (is_used_[t]) scales.tensors[t] = affine_of(static_cast<std::int32_t>(t));
    }
    for (std::size_t i = 0; i < decisions_.size(); ++i) {
      if (decisions_[i].treatment != Treatment::kInteger) continue;
      collect_edges(static_cast<std::int32_t>(i), scales);
    }
    return scales;
  }

  void collect_edges(std::int32_t number, Scales& scales) {
    const ir::Operator& op = graph_.operators[at(number)];
    const OpRule& rule = *decisions_[at(number)].rule;
    const bool same = rule.kind == RuleKind::kSameScale;
    std::optional<Affine> group;
    for (const std::int32_t t : op.outputs) {
      if (is_float(t) && same) group = affine_of(t);
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t t = op.inputs[i];
      if (!is_activation(op, rule, static_cast<int>(i))) continue;
      const std::pair<std::int32_t, int> edge(number, static_cast<int>(i));
      if (is_constant(t)) {
        scales.edges[edge] = group ? *group : constant_affine(op, t);
      } else if (group && *scales.tensors[at(t)] != *group) {
        scales.edges[edge] = *group;
        ++scales.requantizations;
      }
      if (rule.compares) avoid_scale_1(edge, t, scales);
    }
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses index_;
  const std::vector<Decision>& decisions_;
  Mode mode_;
  std::vector<std::int32_t> parent_;
  std::vector<Range> range_;                  // of a root: of its group
  std::vector<std::optional<Affine>> fixed_;  // likewise
  std::vector<bool> is_used_;
};

// A constant that only limits (MAXIMUM, MINIMUM) need not be representable; one that is copied must be.
std::vector<Range> with_constants(const ir::Model& model, const std::vector<Decision>& decisions,
                                  std::vector<Range> ranges) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    const bool copies = decisions[i].treatment == Treatment::kInteger &&
                        decisions[i].rule->kind == RuleKind::kSameScale && op.type != Op::MAXIMUM &&
                        op.type != Op::MINIMUM;
    if (!copies || op.outputs.empty()) continue;
    for (const std::int32_t t : op.inputs) {
      if (t < 0 || !is_float_constant(model, graph.tensors[at(t)])) continue;
      Range& range = ranges[at(op.outputs[0])];
      // The result was observed; what it never held need not fit. But a table that values are looked up in is known:
      // the samples need not have met all of it, and an entry that is cut off is wrong every time.
      if (op.type != Op::CONCATENATION && op.type != Op::PACK && op.type != Op::GATHER) continue;
      for (const float v : float_values(model, graph.tensors[at(t)])) {
        if (!is_masked(v)) range = hull(range, {std::min(v, 0.0f), std::max(v, 0.0f)});
      }
    }
  }
  return ranges;
}

}  // namespace

void avoid_scale_1(const std::pair<std::int32_t, int>& edge, std::int32_t t, Scales& scales) {
  const auto found = scales.edges.find(edge);
  const Affine own = found != scales.edges.end() ? found->second : *scales.tensors[at(t)];
  if (own.scale != 1.0f) return;
  if (found == scales.edges.end()) ++scales.requantizations;
  scales.edges[edge] = {std::nextafter(1.0f, 0.0f), own.zero_point};
}

Affine affine_for(const Range& range, Mode mode) {
  if (mode == Mode::kInt16x8) {
    const float m = std::max(-range.min, range.max);
    return {m > 0 ? m / 32767 : 1.0f, 0};
  }
  const double span = static_cast<double>(range.max) - range.min;
  const auto scale = static_cast<float>(span / 255);
  if (!(scale > 0)) return {1.0f, 0};
  const double zero = -128 - static_cast<double>(range.min) / scale;
  return {scale, static_cast<std::int32_t>(std::clamp(std::nearbyint(zero), -128.0, 127.0))};
}

Scales assign_scales(const ir::Model& model, const std::vector<Decision>& decisions, const std::vector<Range>& ranges,
                     Mode mode, const std::vector<std::pair<std::int32_t, int>>& apart) {
  const std::vector<Range> all = without_masks(model, decisions, with_constants(model, decisions, ranges));
  return Groups(model, decisions, all, mode).run(apart);
}

}  // namespace reef::quantize
