// SPDX-License-Identifier: Apache-2.0
// Operators that ruin the result in integers stay float, if that is measured to gain much.
//
// Candidates are kinds of operators (all of one type) and normalizations: the operators between a mean and the division
// by a standard deviation, whose values span orders of magnitude and which help only together. What is kept is then
// narrowed: operators of the candidate return to integers one after the other where that costs little.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "quantize/graph_index.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr double kLargeGainDb = 3;         // for which float operators are worth it
constexpr double kGoodEnoughDb = 30;       // above, nothing is looked for
constexpr double kNarrowingLossDb = 0.5;   // what an operator's return to integers may cost
constexpr std::size_t kMostNarrowed = 24;  // operators tried one by one
constexpr int kRounds = 2;

struct Candidate {
  std::string name;
  std::vector<std::int32_t> ops;
};

bool is_arithmetic(const ir::Operator& op) {
  static const std::set<std::string_view> kTypes = {
      "MEAN", "SUB", "SQUARED_DIFFERENCE", "MUL", "ADD", "SUM", "SQRT", "RSQRT", "DIV", "POW", "SQUARE"};
  return kTypes.contains(op.type);
}

// Operators between a mean of something and its division by the square root of a variance.
std::vector<std::int32_t> normalizations(const ir::Model& model, const std::vector<Decision>& decisions) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const GraphIndex index(model);
  std::set<std::int32_t> found;
  const auto is_root = [&](const ir::Operator& op) { return op.type == "RSQRT" || op.type == "SQRT"; };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!is_root(graph.operators[i])) continue;
    // Backwards to the mean that the variance is of; forwards to the product with what is normalized.
    std::vector<std::int32_t> open = {static_cast<std::int32_t>(i)};
    std::set<std::int32_t> seen(open.begin(), open.end());
    int means = 0;
    while (!open.empty() && seen.size() < 32) {
      const ir::Operator& op = graph.operators[static_cast<std::size_t>(open.back())];
      found.insert(open.back());
      open.pop_back();
      means += op.type == "MEAN" ? 1 : 0;
      if (op.type == "MEAN" && means > 1) continue;
      for (const std::int32_t t : op.inputs) {
        if (t < 0 || index.producer(t) < 0) continue;
        const std::int32_t p = index.producer(t);
        const ir::Operator& before = graph.operators[static_cast<std::size_t>(p)];
        const bool is_residual =
            before.type == "ADD" && std::none_of(before.inputs.begin(), before.inputs.end(), [&](auto x) {
              return x >= 0 && is_float_constant(model, graph.tensors[static_cast<std::size_t>(x)]);
            });
        if (!is_arithmetic(before) || is_residual || !seen.insert(p).second) continue;
        open.push_back(p);
      }
    }
    for (const std::int32_t t : graph.operators[i].outputs) {
      for (const std::int32_t reader : index.consumers(t)) {
        if (is_arithmetic(graph.operators[static_cast<std::size_t>(reader)])) found.insert(reader);
      }
    }
  }
  std::vector<std::int32_t> result;
  for (const std::int32_t op : found) {
    if (decisions[static_cast<std::size_t>(op)].treatment == Treatment::kInteger) result.push_back(op);
  }
  return result;
}

std::vector<Candidate> candidates(const State& state) {
  std::map<std::string, std::vector<std::int32_t>> by_type;
  for (std::size_t i = 0; i < state.plan.decisions.size(); ++i) {
    const Decision& decision = state.plan.decisions[i];
    if (decision.treatment != Treatment::kInteger || decision.rule->kind == RuleKind::kSameScale) continue;
    const RuleKind kind = decision.rule->kind;
    if (kind == RuleKind::kWeighted || kind == RuleKind::kRecurrent) continue;  // what quantization is for
    by_type[state.model->subgraphs[0].operators[i].type].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<Candidate> result;
  if (std::vector<std::int32_t> ops = normalizations(*state.model, state.plan.decisions); !ops.empty()) {
    result.push_back({"normalizations", std::move(ops)});
  }
  for (auto& [type, ops] : by_type) result.push_back({type, std::move(ops)});
  return result;
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

// Lets operators return to integers where the outputs hardly suffer.
Status narrow(Session& session, const Candidate& candidate) {
  if (candidate.ops.size() > kMostNarrowed || candidate.ops.size() < 2) return ok_status();
  for (const std::int32_t op : candidate.ops) {
    State state = session.best();
    std::erase(state.keep_float, op);
    state.refresh(session.options());
    REEF_RETURN_IF_ERROR(
        session.accept(std::move(state), fmt::format("operator {} in integers again", op), kNarrowingLossDb));
  }
  return ok_status();
}

}  // namespace

Status keep_sensitive_float(Session& session) {
  for (int round = 0; round < kRounds && session.best_error().mean_sqnr_db < kGoodEnoughDb; ++round) {
    const double before = session.best_error().mean_sqnr_db;
    double best_gain = kLargeGainDb;
    const Candidate* best = nullptr;
    const std::vector<Candidate> all = candidates(session.best());
    for (const Candidate& candidate : all) {
      const State state = with_float(session.best(), candidate.ops, session.options());
      REEF_ASSIGN_OR_RETURN(const OutputError error, session.measure(state));
      session.steps().push_back(
          {fmt::format("{} in float ({} operators)", candidate.name, candidate.ops.size()), error, false});
      if (error.mean_sqnr_db - before < best_gain) continue;
      best_gain = error.mean_sqnr_db - before;
      best = &candidate;
    }
    if (best == nullptr) return ok_status();
    REEF_RETURN_IF_ERROR(session.consider(with_float(session.best(), best->ops, session.options()),
                                          fmt::format("{} kept float", best->name)));
    REEF_RETURN_IF_ERROR(narrow(session, *best));
  }
  return ok_status();
}

}  // namespace reef::quantize
