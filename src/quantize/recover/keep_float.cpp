// SPDX-License-Identifier: Apache-2.0
// Operators that ruin the result in integers stay float, if that is measured to gain much.
//
// Candidates are kinds of operators (all of one type) and normalizations: the operators between a mean and the division
// by a standard deviation, whose values span orders of magnitude and which help only together. What is kept is then
// narrowed: operators of the candidate return to integers one after the other where that costs little.
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

std::vector<FloatCandidate> candidates(const State& state) {
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
    const std::vector<FloatCandidate> all = candidates(session.best());
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
