// SPDX-License-Identifier: Apache-2.0
// Operators that ruin the result in integers stay float, if that is measured to gain much.
//
// Candidates are kinds of operators (all of one type) and normalizations: the operators between a mean and the division
// by a standard deviation, whose values span orders of magnitude and which help only together. What is kept is then
// narrowed: operators of the candidate return to integers one after the other where that costs little.
//
// An operator between two layers is another matter than one at the end: in float it cuts the model for an Edge TPU, and
// every layer behind it stays on the CPU. Such ones are tried only where the result would be of little use without.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "quantize/recover/float_candidates.h"
#include "quantize/session.h"

namespace reef::quantize {
namespace {

constexpr double kLargeGainDb = 3;         // for which float operators are worth it
constexpr double kGoodEnoughDb = 30;       // above, nothing is looked for
constexpr double kNarrowingLossDb = 0.5;   // what an operator's return to integers may cost
constexpr std::size_t kMostNarrowed = 24;  // operators tried one by one
constexpr int kRounds = 2;
constexpr double kPoorDb = 15;              // below, float operators may stand between layers
constexpr double kPoorAgreement = 0.9;      // or with less of this: same classes, scores kept
constexpr std::size_t kEnoughSamples = 20;  // for that share to mean something

bool is_poor(const Session& session) {
  const OutputError& error = session.best_error();
  const auto is_low = [](double share) { return share >= 0 && share < kPoorAgreement; };
  const bool shares_count = session.measured().size() >= kEnoughSamples;
  return error.mean_sqnr_db < kPoorDb || (shares_count && (is_low(error.top1_agreement) || is_low(error.kept_scores)));
}

// By operator: integer layers with weights come before it as well as after it.
std::vector<bool> between_layers(const State& state) {
  const ir::Subgraph& graph = state.model->subgraphs[0];
  const auto is_layer = [&](std::size_t op) {
    const Decision& decision = state.plan.decisions[op];
    return decision.treatment == Treatment::kInteger && decision.rule->kind == RuleKind::kWeighted;
  };
  std::vector<bool> follows(graph.tensors.size(), false), leads(graph.tensors.size(), false);  // a layer; by tensor
  const auto any_of = [](const std::vector<std::int32_t>& tensors, const std::vector<bool>& marked) {
    return std::any_of(tensors.begin(), tensors.end(), [&](auto t) { return t >= 0 && marked[at(t)]; });
  };
  const auto mark = [](const std::vector<std::int32_t>& tensors, std::vector<bool>& marked) {
    for (const std::int32_t t : tensors) {
      if (t >= 0) marked[at(t)] = true;
    }
  };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    if (is_layer(i) || any_of(op.inputs, follows)) mark(op.outputs, follows);
  }
  std::vector<bool> result(graph.operators.size(), false);
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    result[i] = any_of(op.inputs, follows) && any_of(op.outputs, leads);
    if (is_layer(i) || any_of(op.outputs, leads)) mark(op.inputs, leads);
  }
  return result;
}

// `anywhere`: also operators between layers.
std::vector<FloatCandidate> candidates(const State& state, bool anywhere) {
  std::map<std::string, std::vector<std::int32_t>> by_type;
  for (std::size_t i = 0; i < state.plan.decisions.size(); ++i) {
    const Decision& decision = state.plan.decisions[i];
    if (decision.treatment != Treatment::kInteger || decision.rule->kind == RuleKind::kSameScale) continue;
    const RuleKind kind = decision.rule->kind;
    if (kind == RuleKind::kWeighted || kind == RuleKind::kRecurrent) continue;  // what quantization is for
    by_type[state.model->subgraphs[0].operators[i].type].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<FloatCandidate> result;
  if (std::vector<std::int32_t> ops = normalizations(*state.model, state.plan.decisions); !ops.empty()) {
    result.push_back({"normalizations", std::move(ops)});
  }
  for (auto& [type, ops] : by_type) result.push_back({type, std::move(ops)});
  if (anywhere) return result;
  const std::vector<bool> is_between = between_layers(state);
  for (FloatCandidate& candidate : result) {
    std::erase_if(candidate.ops, [&](std::int32_t op) { return is_between[at(op)]; });
  }
  std::erase_if(result, [](const FloatCandidate& candidate) { return candidate.ops.empty(); });
  return result;
}

// Lets operators return to integers where the outputs hardly suffer.
Status narrow(Session& session, const FloatCandidate& candidate) {
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
    const FloatCandidate* best = nullptr;
    const bool anywhere = is_poor(session) || session.options().keep_sensitive_float == Choice::kOn;
    const std::vector<FloatCandidate> all = candidates(session.best(), anywhere);
    for (const FloatCandidate& candidate : all) {
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
