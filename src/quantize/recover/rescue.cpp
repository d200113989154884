// SPDX-License-Identifier: Apache-2.0
// Outputs that integers have ruined are brought back by leaving operators in float, as few as it takes.
//
// What ruins an output differs from network to network: spectra whose values span ten orders of magnitude, recurrent
// layers that add up errors over time, normalizations, a single layer with a wild channel. So groups of operators are
// tried: those that are known to suffer together, each kind of operator, and pieces of the network in order. The group
// after which least is missing is kept, until nothing is missing; then what is not needed returns to integers. The goal
// is well above what counts as usable, because other samples will be a little worse than these. In the end all
// operators may be float: such a model is of little use to an Edge TPU, but it is not wrong, and the
// report says what was kept. Not so where outputs are a choice of the best (boxes behind NON_MAX_SUPPRESSION): which
// are chosen, and where they stand, changes with the smallest rounding, so that only float itself gives the same rows.
//
// Not guaranteed: that the groups are the smallest.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ir/op.h"
#include "quantize/recover/float_candidates.h"
#include "quantize/session.h"
#include "quantize/work.h"

namespace reef::quantize {
namespace {

constexpr std::size_t kPieces = 8;  // that the network is cut into
constexpr int kMostGroups = 6;      // kept float one after the other, before all of it is
constexpr double kGoalDb = 20;      // for outputs that were lost
constexpr double kNoticedDb = 2;    // a group that brings less is none that helps
constexpr int kMostReturned = 12;   // trials to return groups and halves of them to integers

std::vector<FloatCandidate> candidates(const State& state) {
  const ir::Model& model = *state.model;
  const std::vector<Decision>& decisions = state.plan.decisions;
  std::vector<FloatCandidate> result;
  const auto add = [&](std::string name, std::vector<std::int32_t> ops) {
    if (!ops.empty()) result.push_back({std::move(name), std::move(ops)});
  };
  add("the spectrum front end", spectrum_front_end(model, decisions));
  add("normalizations", normalizations(model, decisions));
  std::map<std::string, std::vector<std::int32_t>> by_type;
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].treatment != Treatment::kInteger) continue;
    all.push_back(static_cast<std::int32_t>(i));
    const RuleKind kind = decisions[i].rule->kind;
    if (kind == RuleKind::kWeighted || kind == RuleKind::kSameScale) continue;
    by_type[model.subgraphs[0].operators[i].type].push_back(static_cast<std::int32_t>(i));
  }
  for (auto& [type, ops] : by_type) add(type, std::move(ops));
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const std::size_t begin = piece * all.size() / kPieces, end = (piece + 1) * all.size() / kPieces;
    if (begin == end) continue;
    add(fmt::format("operators {} to {}", all[begin], all[end - 1]),
        {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)});
  }
  return result;
}

double work_of_ops(const ir::Model& model, const std::vector<std::int32_t>& ops) {
  double sum = 0;
  for (const std::int32_t op : ops) sum += work_of(model, model.subgraphs[0].operators[at(op)]);
  return sum;
}

// Keeps the group in float after which least is missing; of those after which nothing is, the one with least work.
// False: none helps.
Result<bool> keep_best_group(Session& session, std::vector<FloatCandidate>& kept) {
  const double before = missing_db(session.best_error().views, kGoalDb);
  double best_missing = before - kNoticedDb, best_work = 0;
  FloatCandidate best;
  OutputError best_error;
  for (FloatCandidate& candidate : candidates(session.best())) {
    const State state = with_float(session.best(), candidate.ops, session.options());
    REEF_ASSIGN_OR_RETURN(OutputError error, session.measure(state));
    const double missing = missing_db(error.views, kGoalDb);
    const double work = work_of_ops(*state.model, candidate.ops);
    const bool is_better = missing < best_missing || (missing == 0 && best_missing == 0 && work < best_work);
    session.steps().push_back(
        {fmt::format("{} in float ({} operators)", candidate.name, candidate.ops.size()), error, false});
    if (!is_better) continue;
    best_missing = missing;
    best_work = work;
    best = std::move(candidate);
    best_error = std::move(error);
  }
  if (best.ops.empty()) return false;
  session.take(with_float(session.best(), best.ops, session.options()), fmt::format("{} kept float", best.name),
               best_error);
  kept.push_back(std::move(best));
  return true;
}

// Operators of these groups return to integers, first whole groups, then halves, where all outputs keep what was
// reached.
Status return_to_integers(Session& session, std::vector<FloatCandidate> groups) {
  const double goal = missing_db(session.best_error().views, kGoalDb) == 0 ? kGoalDb : kUsableDb;
  for (int trial = 0; trial < kMostReturned && !groups.empty(); ++trial) {
    const FloatCandidate group = groups.front();
    groups.erase(groups.begin());
    State state = session.best();
    std::erase_if(state.keep_float, [&](std::int32_t op) {
      return std::find(group.ops.begin(), group.ops.end(), op) != group.ops.end();
    });
    state.refresh(session.options());
    REEF_ASSIGN_OR_RETURN(const OutputError error, session.measure(state));
    if (missing_db(error.views, goal) == 0) {
      session.take(std::move(state), fmt::format("{} of {} in integers again", group.ops.size(), group.name), error);
      continue;
    }
    if (group.ops.size() < 2) continue;
    const auto middle = group.ops.begin() + static_cast<std::ptrdiff_t>(group.ops.size() / 2);
    groups.push_back({group.name, {group.ops.begin(), middle}});
    groups.push_back({group.name, {middle, group.ops.end()}});
  }
  return ok_status();
}

bool chooses(const ir::Model& model) {
  const auto& ops = model.subgraphs[0].operators;
  return std::any_of(ops.begin(), ops.end(), [](const ir::Operator& op) {
    return op.type == Op::TOPK_V2 || op.type.starts_with("NON_MAX_SUPPRESSION");
  });
}

std::vector<std::int32_t> all_integer_ops(const State& state) {
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < state.plan.decisions.size(); ++i) {
    if (state.plan.decisions[i].treatment == Treatment::kInteger) all.push_back(static_cast<std::int32_t>(i));
  }
  return all;
}

}  // namespace

Status rescue(Session& session) {
  if (missing_db(session.best_error().views) == 0) return ok_status();
  State state = session.best();
  // Corrected biases make up for roundings that operators in float do not have; they are corrected again afterwards.
  state.model = state.float_model;
  state.has_float_borders = true;
  state.refresh(session.options());
  REEF_ASSIGN_OR_RETURN(const OutputError error, session.measure(state));
  session.take(std::move(state), "an output is lost: looking for operators to keep in float", error);
  std::vector<FloatCandidate> kept;
  for (int group = 0; group < kMostGroups && missing_db(session.best_error().views, kGoalDb) > 0; ++group) {
    REEF_ASSIGN_OR_RETURN(const bool helped, keep_best_group(session, kept));
    if (!helped) break;
  }
  if (missing_db(session.best_error().views) > 0 && !chooses(*session.best().model)) {
    FloatCandidate all{"all operators", all_integer_ops(session.best())};
    State everything = with_float(session.best(), all.ops, session.options());
    REEF_ASSIGN_OR_RETURN(const OutputError best, session.measure(everything));
    // Where even this does not help, integers are not at fault, and as much as possible stays in them.
    if (missing_db(best.views) >= missing_db(session.best_error().views)) return ok_status();
    session.take(std::move(everything), "all operators kept float", best);
    kept.push_back(std::move(all));
  }
  return return_to_integers(session, std::move(kept));
}

}  // namespace reef::quantize
