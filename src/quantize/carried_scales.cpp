// SPDX-License-Identifier: Apache-2.0
// From scales that a model carries for some tensors to a plan for all: they spread through operators that only move or
// choose values (reshape, pooling ...), and backwards through ReLU, whose result's range cuts its operand's as well.
#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "quantize/fold_quantization.h"
#include "quantize/graph_constants.h"
#include "quantize/scale_groups.h"

namespace reef::quantize {
namespace {

class Spreader {
 public:
  Spreader(const Folded& folded, const QuantizeOptions& options)
      : model_(folded.model), graph_(model_.subgraphs[0]), index_(model_), carried_(folded.carried) {
    plan_.decisions = decide(model_, options);
    for (Decision& decision : plan_.decisions) {
      if (decision.rule == nullptr || decision.rule->kind != RuleKind::kRecurrent) continue;
      decision = {Treatment::kFloat, nullptr, "the model carries no scale for its state"};
    }
    plan_.ranges.assign(graph_.tensors.size(), Range{});
    scales_.tensors.resize(graph_.tensors.size());
    for (const auto& [t, affine] : carried_.tensors) {
      if (is_constant(t)) continue;
      scales_.tensors[at(t)] = affine;
      plan_.rounded.insert(t);
    }
  }

  Plan run() {
    while (spread()) {
    }
    for (std::size_t i = 0; i < plan_.decisions.size(); ++i) settle(i);
    for (const auto& [t, weights] : carried_.weights) plan_.given_weight_scales[t] = weights.scale;
    for (const std::int32_t t : graph_.outputs) {
      if (scales_.tensors[at(t)]) plan_.border[t] = *scales_.tensors[at(t)];
    }
    fix_units();
    for (std::size_t i = 0; i < plan_.decisions.size(); ++i) fix_pieces(i);
    for (std::size_t i = 0; i < plan_.decisions.size(); ++i) collect_edges(i);
    plan_.scales = std::move(scales_);
    return std::move(plan_);
  }

 private:
  bool is_float(std::int32_t t) const { return t >= 0 && graph_.tensors[at(t)].type == ir::DataType::kFloat32; }
  bool is_constant(std::int32_t t) const { return is_float_constant(model_, graph_.tensors[at(t)]); }
  std::optional<Affine>& scale(std::int32_t t) { return scales_.tensors[at(t)]; }
  bool give(std::int32_t t, const Affine& affine) {
    if (!is_float(t) || is_constant(t) || scale(t)) return false;
    scale(t) = affine;
    return true;
  }
  bool is_integer(std::size_t op, RuleKind kind) const {
    return plan_.decisions[op].treatment == Treatment::kInteger && plan_.decisions[op].rule->kind == kind;
  }

  bool spread() {
    bool changed = false;
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const ir::Operator& op = graph_.operators[i];
      const bool cuts =
          op.type == Op::RELU || op.type == Op::RELU6 || op.type == Op::RELU_N1_TO_1 || op.type == Op::RELU_0_TO_1;
      if (cuts && index_.has_one_use(op.inputs[0]) && scale(op.outputs[0])) {
        changed = give(op.inputs[0], *scale(op.outputs[0])) || changed;
      }
      if (!is_integer(i, RuleKind::kSameScale)) continue;
      std::optional<Affine> known;
      for (const std::int32_t t : op.outputs) known = is_float(t) && scale(t) ? scale(t) : known;
      for (const std::int32_t t : op.inputs) {
        if (!known && is_float(t) && !is_constant(t)) known = scale(t);
      }
      if (!known) continue;
      for (const std::int32_t t : op.outputs) changed = give(t, *known) || changed;
      for (const std::int32_t t : op.inputs) changed = give(t, *known) || changed;
    }
    return changed;
  }

  // An operator with an operand of unknown scale, or with weights whose scales cannot be, stays float.
  void settle(std::size_t number) {
    Decision& decision = plan_.decisions[number];
    if (decision.treatment != Treatment::kInteger) return;
    const ir::Operator& op = graph_.operators[number];
    const auto stay = [&](std::string why) { decision = {Treatment::kFloat, nullptr, std::move(why)}; };
    for (const std::int32_t t : op.inputs) {
      if (!is_float(t)) continue;
      if (!is_constant(t) && !scale(t)) return stay("the model carries no scale for one of its operands");
    }
    if (decision.rule->kind == RuleKind::kWeighted && !fits_weights(op, *decision.rule)) {
      return stay("its weights' scales lie along another dimension than that of its results");
    }
    if (decision.rule->kind == RuleKind::kUnit) {
      // What the model carries says what the result may be; TFLite's kernel knows only its own range.
      const std::optional<Affine>& given = scale(op.outputs[0]);
      const bool is_unbounded = op.type == Op::LOG_SOFTMAX && !given;
      if (is_unbounded || (given && ends_above(decision.rule->unit8, lowest(*given)))) {
        return stay("its results may be less than its 8-bit kernel gives");
      }
      return;
    }
    for (const std::int32_t t : op.outputs) {
      if (is_float(t) && !scale(t)) return stay("the model carries no scale for its result");
    }
  }

  bool fits_weights(const ir::Operator& op, const OpRule& rule) const {
    const std::int32_t t = op.inputs[at(rule.weights)];
    const auto found = carried_.weights.find(t);
    if (found == carried_.weights.end() || found->second.scale.size() == 1) return true;
    const ir::Shape& shape = graph_.tensors[at(t)].shape;
    return found->second.dimension == rule.channel_axis &&
           static_cast<std::int32_t>(found->second.scale.size()) == shape[rule.channel_axis];
  }

  // Results whose scale TFLite fixes: computed at that one, and requantized to the carried one for who reads them.
  void fix_units() {
    for (std::size_t i = 0; i < plan_.decisions.size(); ++i) {
      if (!is_integer(i, RuleKind::kUnit)) continue;
      const std::int32_t t = graph_.operators[i].outputs[0];
      const Affine unit = plan_.decisions[i].rule->unit8;
      if (scale(t) && *scale(t) != unit) requantized_[t] = *scale(t);
      scale(t) = unit;
    }
  }

  // Pieces of one tensor (SPLIT) with different scales: all are computed at the operand's, for it is only moved, and
  // requantized for who reads them.
  void fix_pieces(std::size_t number) {
    const std::vector<std::int32_t>& outputs = graph_.operators[number].outputs;
    if (!is_integer(number, RuleKind::kSameScale) || outputs.size() < 2) return;
    std::optional<Affine> common;
    for (const std::int32_t t : graph_.operators[number].inputs) {
      if (!common && is_float(t) && !is_constant(t)) common = scale(t);
    }
    const auto differs = [&](std::int32_t t) { return is_float(t) && *scale(t) != *scale(outputs[0]); };
    if (!common || std::none_of(outputs.begin(), outputs.end(), differs)) return;
    for (const std::int32_t t : outputs) {
      if (!is_float(t) || *scale(t) == *common) continue;
      requantized_[t] = *scale(t);
      scale(t) = *common;
    }
  }

  void collect_edges(std::size_t number) {
    const Decision& decision = plan_.decisions[number];
    if (decision.treatment != Treatment::kInteger) return;
    const ir::Operator& op = graph_.operators[number];
    std::optional<Affine> group;
    if (decision.rule->kind == RuleKind::kSameScale) {
      for (const std::int32_t t : op.outputs) group = is_float(t) ? scale(t) : group;
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int32_t t = op.inputs[i];
      if (!is_float(t) || (decision.rule->kind == RuleKind::kWeighted && static_cast<int>(i) != decision.rule->input)) {
        continue;
      }
      const std::pair<std::int32_t, int> edge(static_cast<std::int32_t>(number), static_cast<int>(i));
      const auto other = requantized_.find(t);
      if (is_constant(t)) {
        scales_.edges[edge] = group ? *group : constant_affine(t);
      } else if (group && *scale(t) != *group) {
        scales_.edges[edge] = *group;
      } else if (!group && other != requantized_.end()) {
        scales_.edges[edge] = other->second;
      }
      if (decision.rule->compares) avoid_scale_1(edge, t, scales_);
    }
  }

  Affine constant_affine(std::int32_t t) const {
    if (const auto found = carried_.tensors.find(t); found != carried_.tensors.end()) return found->second;
    Range range;
    for (const float v : float_values(model_, graph_.tensors[at(t)])) {
      if (std::isfinite(v)) range = hull(range, {v, v});
    }
    return affine_for(range, Mode::kInt8);
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  ir::Uses index_;
  const CarriedScales& carried_;
  Scales scales_;
  std::map<std::int32_t, Affine> requantized_;
  Plan plan_;
};

}  // namespace

Plan plan_from_carried(const Folded& folded, const QuantizeOptions& options) { return Spreader(folded, options).run(); }

}  // namespace reef::quantize
