// SPDX-License-Identifier: Apache-2.0
#include "quantize/op_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "ir/op.h"
#include "quantize/float_functions.h"
#include "quantize/graph_constants.h"
#include "quantize/integer_lstm.h"

namespace reef::quantize {
namespace {

constexpr OpRule kRules[] = {
#define FREE(type, version8, version16) {#type, RuleKind::kFree, version8, version16, {}, {}, 0, -1, -1, 0},
#define COMPARED(type, version8) {#type, RuleKind::kFree, version8, 0, {}, {}, 0, -1, -1, 0, true},
#define SAME(type, version8, version16) {#type, RuleKind::kSameScale, version8, version16, {}, {}, 0, -1, -1, 0},
#define UNIT(type, version8, version16, scale8, zero8, scale16) \
  {#type, RuleKind::kUnit, version8, version16, {scale8, zero8}, {scale16, 0}, 0, -1, -1, 0},
#define WEIGHTED(type, version8, version16, input, weights, bias, axis) \
  {#type, RuleKind::kWeighted, version8, version16, {}, {}, input, weights, bias, axis},
#define RECURRENT(type, version8) {#type, RuleKind::kRecurrent, version8, 0, {}, {}, 0, -1, -1, 0},
#include "quantize/op_rules.def"
#undef RECURRENT
#undef FREE
#undef COMPARED
#undef SAME
#undef UNIT
#undef WEIGHTED
};

const ir::Tensor* operand(const ir::Subgraph& graph, const std::vector<std::int32_t>& list, int position) {
  if (position < 0 || position >= static_cast<int>(list.size())) return nullptr;
  const std::int32_t t = list[at(position)];
  return t < 0 ? nullptr : &graph.tensors[at(t)];
}

bool touches_float(const ir::Subgraph& graph, const ir::Operator& op) {
  const auto is_float = [&](std::int32_t t) { return t >= 0 && graph.tensors[at(t)].type == ir::DataType::kFloat32; };
  return std::any_of(op.inputs.begin(), op.inputs.end(), is_float) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), is_float);
}

bool has_variables(const ir::Subgraph& graph, const ir::Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](std::int32_t t) { return t >= 0 && graph.tensors[at(t)].is_variable; });
}

// Why a weighted operator cannot be had in integers, or nothing.
std::string weights_problem(const ir::Model& model, const ir::Operator& op, const OpRule& rule) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Tensor* weights = operand(graph, op.inputs, rule.weights);
  if (weights == nullptr || !is_float_constant(model, *weights)) return "its weights are computed, not constant";
  const ir::Tensor* bias = operand(graph, op.inputs, rule.bias);
  if (bias != nullptr && !is_float_constant(model, *bias)) return "its bias is computed, not constant";
  if (weights->shape.rank() <= rule.channel_axis) return "its weights have too few dimensions";
  return {};
}

Decision decide_one(const ir::Model& model, const ir::Operator& op, const QuantizeOptions& options) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const auto stays_float = [](std::string why) { return Decision{Treatment::kFloat, nullptr, std::move(why)}; };
  if (!touches_float(graph, op)) return {};
  const OpRule* rule = rule_of(op.type);
  const bool is_16 = options.mode == Mode::kInt16x8;
  if (rule == nullptr || (is_16 ? rule->version16 : rule->version8) == 0) {
    return stays_float(fmt::format("TFLite has no {} kernel for it", is_16 ? "int16" : "int8"));
  }
  if (rule->kind == RuleKind::kRecurrent) {
    if (std::string problem = lstm_problem(model, op); !problem.empty()) return stays_float(problem);
  } else if (has_variables(graph, op)) {
    return stays_float("it keeps state");
  }
  // Results of SHAPE, CAST and the like: only operators all of whose results are float or plain numbers made of float.
  if (rule->kind == RuleKind::kWeighted) {
    if (std::string problem = weights_problem(model, op, *rule); !problem.empty()) return stays_float(problem);
    if (op.type == Op::FULLY_CONNECTED && op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") {
      return stays_float("its weights are shuffled");
    }
  }
  if (op.type == Op::SOFTMAX && !is_16 && !options.full_integer) {
    // TFLite sums exponentials, of which the largest is 1, in a number of 12 bits before the point.
    constexpr std::int32_t kLongestRow = 4095;
    const ir::Tensor* result = operand(graph, op.outputs, 0);
    if (result != nullptr && result->shape.rank() > 0 && result->shape.last() > kLongestRow) {
      return stays_float(fmt::format("its rows of {} elements can overflow the fixed-point sum of exponentials ({})",
                                     result->shape.last(), kLongestRow));
    }
  }
  const std::string_view activation = op.attributes.get_enum("fused_activation_function", "NONE");
  const bool is_cell = rule->kind == RuleKind::kRecurrent;  // whose function is inside
  if (!is_cell && (activation == "TANH" || activation == "SIGN_BIT"))
    return stays_float("its fused activation has no integer form");
  for (const std::string& pattern : options.keep_float) {
    for (const std::int32_t t : op.outputs) {
      if (t < 0) continue;
      const std::string_view name = without_suffixes(graph.tensors[at(t)].name);
      if (matches(pattern, name)) return stays_float("the user wants it so");
    }
  }
  return {Treatment::kInteger, rule, {}};
}

// An operator that only moves values between float operators gains nothing from integers.
void drop_islands(const ir::Model& model, const QuantizeOptions& options, std::vector<Decision>& decisions) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  const auto is_integer = [&](std::int32_t op) {
    return op >= 0 && decisions[at(op)].treatment == Treatment::kInteger;
  };
  const auto meets_integers = [&](const ir::Operator& op) {
    for (const std::int32_t t : op.inputs) {
      if (t < 0 || graph.tensors[at(t)].type != ir::DataType::kFloat32) continue;
      if (is_integer(index.producer(t))) return true;
      if (index.is_input(t) && options.input_type != IoType::kFloat32) return true;
    }
    for (const std::int32_t t : op.outputs) {
      const auto readers = index.consumers(t);
      if (std::any_of(readers.begin(), readers.end(), is_integer)) return true;
      if (index.is_output(t) && options.output_type != IoType::kFloat32) return true;
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (!is_integer(static_cast<std::int32_t>(i)) || decisions[i].rule->kind != RuleKind::kSameScale) continue;
      if (meets_integers(graph.operators[i])) continue;
      decisions[i] = {Treatment::kFloat, nullptr, "it stands between float operators"};
      changed = true;
    }
  }
}

}  // namespace

const OpRule* rule_of(std::string_view type) {
  for (const OpRule& rule : kRules) {
    if (rule.type == type) return &rule;
  }
  return nullptr;
}

std::string_view without_suffixes(std::string_view name) {
  for (;;) {
    if (name.ends_with(kCentredSuffix)) {
      name.remove_suffix(kCentredSuffix.size());
    } else if (name.ends_with(kEqualizedSuffix)) {
      name.remove_suffix(kEqualizedSuffix.size());
    } else {
      return name;
    }
  }
}

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t i = star; i <= name.size(); ++i) {
    if (matches(rest, name.substr(i))) return true;
  }
  return false;
}

std::vector<Decision> decide(const ir::Model& model, const QuantizeOptions& options,
                             const std::vector<std::int32_t>& keep_float) {
  std::vector<Decision> result;
  for (const ir::Operator& op : model.subgraphs[0].operators) result.push_back(decide_one(model, op, options));
  if (!options.full_integer) widen_float_functions(model, result);
  for (const std::int32_t op : keep_float) {
    Decision& decision = result[at(op)];
    if (decision.treatment == Treatment::kInteger) {
      decision = {Treatment::kFloat, nullptr, "in integers it costs the result too much accuracy (measured)"};
    }
  }
  drop_islands(model, options, result);
  return result;
}

Status check_names(const ir::Model& model, const QuantizeOptions& options) {
  const ir::Subgraph& graph = model.subgraphs[0];
  for (const std::string& pattern : options.keep_float) {
    const bool is_known = std::any_of(graph.operators.begin(), graph.operators.end(), [&](const ir::Operator& op) {
      return std::any_of(op.outputs.begin(), op.outputs.end(),
                         [&](std::int32_t t) { return t >= 0 && matches(pattern, graph.tensors[at(t)].name); });
    });
    if (!is_known) {
      return invalid_input("no operator computes a tensor named '{}'; `reef inspect --tensors` lists the names",
                           pattern);
    }
  }
  return ok_status();
}

}  // namespace reef::quantize
