// SPDX-License-Identifier: Apache-2.0
#include "quantize/recover/float_candidates.h"

#include <algorithm>
#include <set>

#include "ir/op.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {
namespace {

constexpr int kMostFrontLayers = 8;  // layers with weights that a spectrum takes: bases of a transform, a filter bank

// Operators that a normalization is written with. No trait of theirs says that: others compute element by element, too.
bool is_arithmetic(const ir::Operator& op) {
  return is_one_of(op.type, {Op::MEAN, Op::SUB, Op::SQUARED_DIFFERENCE, Op::MUL, Op::ADD, Op::SUM, Op::SQRT, Op::RSQRT,
                             Op::DIV, Op::POW, Op::SQUARE});
}

// All operators that a tensor of operator `last` depends on, `last` among them.
std::set<std::int32_t> ancestors_of(const ir::Subgraph& graph, const ir::Uses& index, std::int32_t last) {
  std::set<std::int32_t> found = {last};
  std::vector<std::int32_t> open = {last};
  while (!open.empty()) {
    const ir::Operator& op = graph.operators[at(open.back())];
    open.pop_back();
    for (const std::int32_t t : op.inputs) {
      const std::int32_t producer = t < 0 ? -1 : index.producer(t);
      if (producer >= 0 && found.insert(producer).second) open.push_back(producer);
    }
  }
  return found;
}

std::vector<std::int32_t> in_integers(const std::set<std::int32_t>& ops, const std::vector<Decision>& decisions) {
  std::vector<std::int32_t> result;
  for (const std::int32_t op : ops) {
    if (decisions[at(op)].treatment == Treatment::kInteger) result.push_back(op);
  }
  return result;
}

}  // namespace

std::vector<std::int32_t> normalizations(const ir::Model& model, const std::vector<Decision>& decisions) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::set<std::int32_t> found;
  const auto is_root = [&](const ir::Operator& op) { return op.type == Op::RSQRT || op.type == Op::SQRT; };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!is_root(graph.operators[i])) continue;
    // Backwards to the mean that the variance is of; forwards to the product with what is normalized.
    std::vector<std::int32_t> open = {static_cast<std::int32_t>(i)};
    std::set<std::int32_t> seen(open.begin(), open.end());
    int means = 0;
    while (!open.empty() && seen.size() < 32) {
      const ir::Operator& op = graph.operators[at(open.back())];
      found.insert(open.back());
      open.pop_back();
      means += op.type == Op::MEAN ? 1 : 0;
      if (op.type == Op::MEAN && means > 1) continue;
      for (const std::int32_t t : op.inputs) {
        if (t < 0 || index.producer(t) < 0) continue;
        const std::int32_t p = index.producer(t);
        const ir::Operator& before = graph.operators[at(p)];
        const bool is_residual =
            before.type == Op::ADD && std::none_of(before.inputs.begin(), before.inputs.end(), [&](auto x) {
              return x >= 0 && is_float_constant(model, graph.tensors[at(x)]);
            });
        if (!is_arithmetic(before) || is_residual || !seen.insert(p).second) continue;
        open.push_back(p);
      }
    }
    for (const std::int32_t t : graph.operators[i].outputs) {
      for (const std::int32_t reader : index.consumers(t)) {
        if (is_arithmetic(graph.operators[at(reader)])) found.insert(reader);
      }
    }
  }
  return in_integers(found, decisions);
}

std::vector<std::int32_t> spectrum_front_end(const ir::Model& model, const std::vector<Decision>& decisions) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(model);
  std::set<std::int32_t> found;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const std::string& type = graph.operators[i].type;
    if (type != Op::LOG && type != Op::SQRT && type != Op::POW) continue;
    const std::set<std::int32_t> before = ancestors_of(graph, index, static_cast<std::int32_t>(i));
    const auto layers = std::count_if(before.begin(), before.end(), [&](std::int32_t op) {
      const OpRule* rule = rule_of(graph.operators[at(op)].type);
      return rule != nullptr && (rule->kind == RuleKind::kWeighted || rule->kind == RuleKind::kRecurrent);
    });
    if (layers <= kMostFrontLayers) found.insert(before.begin(), before.end());
  }
  return in_integers(found, decisions);
}

State with_float(const State& from, const std::vector<std::int32_t>& ops, const QuantizeOptions& options) {
  State state = from;
  for (const std::int32_t op : ops) {
    if (std::find(state.keep_float.begin(), state.keep_float.end(), op) == state.keep_float.end()) {
      state.keep_float.push_back(op);
    }
  }
  state.refresh(options);
  return state;
}

}  // namespace reef::quantize
