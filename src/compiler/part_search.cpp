// SPDX-License-Identifier: Apache-2.0
#include "compiler/part_search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "compiler/choices_by_code.h"
#include "compiler/code_facts.h"
#include "compiler/code_generator.h"
#include "lower/rearrangement_cache.h"
#include "ops/dependencies.h"
#include "partition/advice.h"
#include "partition/candidates.h"
#include "partition/search.h"

namespace reef::compiler {
namespace {

using partition::OpSet;

// Parts that are made where one does not fit, unless several are asked for (-a).
constexpr std::size_t kMostParts = 2, kMostPartsIfAsked = 32;

// One way to cut the model.
struct Cut {
  std::vector<OpSet> sets;                   // in execution order
  std::map<std::int32_t, std::string> left;  // to the CPU, with the reason
  double predicted_us = 0, all_cpu_us = 0;
  double work_us = 0;  // that the chip takes off the CPU
  int number = 0;      // in the order in which they were found

  // Predicted for a host whose CPU takes so many times as long.
  double predicted_with(double cpu_factor) const { return predicted_us + (cpu_factor - 1) * (all_cpu_us - work_us); }
  bool is_better_than(const Cut& other, double cpu_factor) const {
    const double mine = predicted_with(cpu_factor), theirs = other.predicted_with(cpu_factor);
    return mine != theirs ? mine < theirs : number < other.number;
  }
};

// What one part of it can become.
struct Way {
  std::vector<OpSet> sets;                   // in execution order
  std::map<std::int32_t, std::string> left;  // to the CPU
};

// How much slower the CPU of a host is than predicted, for which what was planned takes half of the CPU's time. At
// least what the prediction is known to be wrong by (docs/performance.md: 3.4 ms measured where 2.6 are predicted).
double cpu_factor_for(const Cut& planned) {
  constexpr double kWorthIt = 2, kLeast = 1.3;
  const double on_chip = planned.predicted_us - (planned.all_cpu_us - planned.work_us);
  return planned.work_us > 0 ? std::max(kLeast, kWorthIt * on_chip / planned.work_us) : kLeast;
}

struct Found {
  PartSearchReport report;
  partition::Assessment assessment;
  partition::Partition partition;
  std::vector<partition::PartInCode> codes;  // of its parts
};

class Search {
 public:
  Search(const Plan& plan, const TryPart& try_part, const PartSearchOptions& options)
      : plan_(plan), try_part_(try_part), options_(options), how_(options.plan.partition), graph_(*plan.model) {
    how_.explain = false;
  }

  Result<Found> run() {
    Cut planned;
    for (const partition::Part& part : plan_.partition.parts) planned.sets.push_back(part.ops);
    if (planned.sets.empty()) return outcome(planned);
    add(planned);
    const double cpu_factor = cpu_factor_for(queue_.front());
    std::size_t most = 0;  // operators that may be tried
    for (const OpSet& ops : planned.sets) most += static_cast<std::size_t>(options_.most_trials) * ops.size();
    while (!queue_.empty() && tried_ops_ < most) {
      REEF_RETURN_IF_ERROR(check_time());
      const auto best = std::min_element(queue_.begin(), queue_.end(),
                                         [&](const Cut& a, const Cut& b) { return a.is_better_than(b, cpu_factor); });
      const Cut cut = *best;
      queue_.erase(best);
      REEF_ASSIGN_OR_RETURN(const bool has_code, try_cut(cut));
      if (has_code) return outcome(cut);
    }
    return longest_beginning(planned.sets.front());
  }

 private:
  Status check_time() const {
    if (!options_.is_late()) return ok_status();
    return make_error(StatusCode::kResourceExhausted,
                      "the time is over; {} parts were tried, and none of the best has code", trials_of_.size());
  }
  std::size_t most_parts() const { return how_.several_parts ? kMostPartsIfAsked : kMostParts; }

  // ---- Trying ----

  const PartTrial& trial_of(const OpSet& ops) {
    const auto known = trials_of_.find(ops);
    if (known != trials_of_.end()) return known->second;
    tried_ops_ += ops.size();
    ops::Dependencies::Border border = graph_.border(ops);
    const partition::Part part{ops, std::move(border.inputs), std::move(border.outputs), {}};
    return trials_of_.emplace(ops, try_part_(*plan_.model, part)).first->second;
  }

  // Where parts have no code, the ways to cut them go to the queue: of all of them at once, as blocks that are alike
  // fail alike.
  Result<bool> try_cut(const Cut& cut) {
    std::vector<std::vector<Way>> ways(cut.sets.size());  // of each part; none: it has code
    std::size_t most = 0;
    for (std::size_t i = 0; i < cut.sets.size(); ++i) {
      const PartTrial& trial = trial_of(cut.sets[i]);
      if (trial.status.ok()) continue;
      if (trial.status.code() != StatusCode::kUnsupported) return trial.status;
      if (first_reason_.empty()) first_reason_ = trial.status.message();
      std::map<std::int32_t, std::string> refused;
      for (const lower::RefusedOp& op : trial.refused) refused[op.op] = op.reason;
      if (refused.empty()) refused = too_large_alone(cut.sets[i], trial);
      ways[i] = refused.empty() ? ways_at(cut.sets[i], trial) : ways_without(cut.sets[i], refused);
      most = std::max(most, ways[i].size());
      if (!refused.empty()) plan_anew(cut, refused);
    }
    for (std::size_t way = 0; way < most; ++way) replace(cut, ways, way);
    return most == 0;
  }

  // The operator where memory is shortest, if it does not even fit by itself, and those like it that do not either:
  // networks repeat their blocks.
  std::map<std::int32_t, std::string> too_large_alone(const OpSet& ops, const PartTrial& trial) {
    std::map<std::int32_t, std::string> result;
    if (!std::binary_search(ops.begin(), ops.end(), trial.crowded) || ops.size() == 1) return result;
    if (trial_of({trial.crowded}).status.code() != StatusCode::kUnsupported) return result;
    for (const std::int32_t op : ops) {
      if (!are_alike(op, trial.crowded)) continue;
      const Status alone = trial_of({op}).status;
      if (alone.code() == StatusCode::kUnsupported) result[op] = alone.message();
    }
    return result;
  }
  bool are_alike(std::int32_t a, std::int32_t b) const {
    const ir::Subgraph& graph = graph_.graph();
    const ir::Operator &one = graph.operators[at(a)], &other = graph.operators[at(b)];
    const auto shapes = [&](const std::vector<std::int32_t>& tensors) {
      std::vector<ir::Shape> result;
      for (const std::int32_t t : tensors) result.push_back(t < 0 ? ir::Shape() : graph.tensors[at(t)].shape);
      return result;
    };
    return one.type == other.type && one.attributes == other.attributes && shapes(one.inputs) == shapes(other.inputs) &&
           shapes(one.outputs) == shapes(other.outputs);
  }

  // Assumes that if a beginning has code, a shorter one does.
  Result<Found> longest_beginning(const OpSet& ops) {
    Status reason;
    const auto beginning = [&](std::int32_t count) { return OpSet(ops.begin(), ops.begin() + count); };
    REEF_ASSIGN_OR_RETURN(const partition::SearchResult found,
                          partition::longest_that_compiles(static_cast<std::int32_t>(ops.size()), 1,
                                                           [&](std::int32_t count) -> Result<bool> {
                                                             REEF_RETURN_IF_ERROR(check_time());
                                                             const Status status = trial_of(beginning(count)).status;
                                                             if (status.ok()) return true;
                                                             if (status.code() != StatusCode::kUnsupported)
                                                               return status;
                                                             reason = status;
                                                             return false;
                                                           }));
    Cut cut;
    if (found.ops > 0) cut.sets = {beginning(found.ops)};
    if (at(found.ops) < ops.size()) cut.left[ops[at(found.ops)]] = reason_for(reason);
    if (found.ops == 0) {
      for (const std::int32_t op : ops) cut.left[op] = reason_for(reason);
    }
    return outcome(cut);
  }

  // ---- Ways to cut ----

  static std::string reason_for(const Status& status) {
    return "there is no code for a part that holds it: " + status.message();
  }

  OpSet connected(const OpSet& ops, std::int32_t op, bool forward) const {  // with its descendants, or ancestors
    std::set<std::int32_t> inside(ops.begin(), ops.end()), found = {op};
    std::vector<std::int32_t> open = {op};
    while (!open.empty()) {
      const std::int32_t one = open.back();
      open.pop_back();
      for (const std::int32_t next : forward ? graph_.successors(one) : graph_.predecessors(one)) {
        if (inside.contains(next) && found.insert(next).second) open.push_back(next);
      }
    }
    return {found.begin(), found.end()};
  }
  static OpSet without(const OpSet& ops, const OpSet& others) {
    OpSet rest;
    std::set_difference(ops.begin(), ops.end(), others.begin(), others.end(), std::back_inserter(rest));
    return rest;
  }

  // Memory is too small: the part ends before the operator where it is shortest, begins with it or behind it, or
  // becomes two there.
  std::vector<Way> ways_at(const OpSet& ops, const PartTrial& trial) const {
    const bool is_known = std::binary_search(ops.begin(), ops.end(), trial.crowded);
    const std::int32_t op = is_known ? trial.crowded : ops[ops.size() / 2];
    const std::map<std::int32_t, std::string> alone = {{op, reason_for(trial.status)}};
    if (ops.size() == 1) return {{{}, alone}};
    const OpSet behind = connected(ops, op, true), before = without(ops, behind);
    const OpSet leading = connected(ops, op, false), beside = without(ops, leading);
    return {{{before, behind}, {}}, {{leading, beside}, {}}, {{before, without(behind, {op})}, alone},
            {{before}, alone},      {{behind}, {}},          {{beside}, alone}};
  }

  // Operators have no code: the part without them, in as many parts as that makes, or the largest of those.
  std::vector<Way> ways_without(const OpSet& ops, const std::map<std::int32_t, std::string>& refused) const {
    std::vector<bool> fits(at(graph_.op_count()));
    for (const std::int32_t op : ops) fits[at(op)] = !refused.contains(op);
    std::vector<Way> ways;
    for (const auto layering : {partition::Layering::kEarly, partition::Layering::kLate}) {
      const std::vector<OpSet> pieces = partition::layers(graph_, fits, layering);
      ways.push_back({pieces, refused});
      ways.push_back({largest(pieces, 1), refused});
    }
    return ways;
  }

  // All that can be planned without the operators that have no code.
  void plan_anew(const Cut& cut, const std::map<std::int32_t, std::string>& refused) {
    Cut anew;
    anew.left = cut.left;
    anew.left.insert(refused.begin(), refused.end());
    auto planned = partition::partition(*plan_.model, assessment_with(anew.left), *plan_.costs, how_);
    if (!planned.ok()) return;  // it cannot fail where the first one did not
    for (partition::Part& one : planned->parts) anew.sets.push_back(std::move(one.ops));
    add(std::move(anew));
  }

  // So many of the sets that take most work off the CPU, in their order.
  std::vector<OpSet> largest(const std::vector<OpSet>& sets, std::size_t count) const {
    std::vector<std::size_t> order(sets.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return work_of(sets[a]) > work_of(sets[b]); });
    if (order.size() > count) order.resize(count);
    std::sort(order.begin(), order.end());
    std::vector<OpSet> result;
    for (const std::size_t i : order) result.push_back(sets[i]);
    return result;
  }

  // Each part that has no code by the way of that number, or its last one.
  void replace(const Cut& cut, const std::vector<std::vector<Way>>& ways, std::size_t number) {
    Cut changed;
    changed.left = cut.left;
    for (std::size_t i = 0; i < cut.sets.size(); ++i) {
      if (ways[i].empty()) {
        changed.sets.push_back(cut.sets[i]);
        continue;
      }
      const Way& way = ways[i][std::min(number, ways[i].size() - 1)];
      changed.sets.insert(changed.sets.end(), way.sets.begin(), way.sets.end());
      changed.left.insert(way.left.begin(), way.left.end());
    }
    add(std::move(changed));
  }

  // More parts than allowed: the largest.
  void add(Cut cut) {
    std::erase_if(cut.sets, [](const OpSet& ops) { return ops.empty(); });
    cut.sets = largest(cut.sets, std::max(most_parts(), plan_.partition.parts.size()));
    if (cut.sets.empty() || !seen_.insert(cut.sets).second) return;
    const partition::Partition parts =
        partition::partition_as(*plan_.model, plan_.assessment, *plan_.costs, how_, cut.sets);
    cut.predicted_us = parts.predicted_us;
    cut.all_cpu_us = parts.all_cpu_us;
    cut.number = static_cast<int>(seen_.size());
    for (const OpSet& ops : cut.sets) cut.work_us += work_of(ops);
    queue_.push_back(std::move(cut));
  }

  double work_of(const OpSet& ops) const {
    return std::accumulate(ops.begin(), ops.end(), 0.0,
                           [&](double sum, std::int32_t op) { return sum + plan_.costs->op(op).cpu; });
  }

  // ---- The answer ----

  partition::Assessment assessment_with(const std::map<std::int32_t, std::string>& left) const {
    partition::Assessment assessment = plan_.assessment;
    for (const auto& [op, reason] : left) partition::leave_without_code(assessment, op, reason);
    return assessment;
  }

  Found outcome(const Cut& cut) const {
    Found found;
    found.report.trials = static_cast<int>(trials_of_.size());
    found.report.reason = first_reason_;
    for (const auto& [op, reason] : cut.left) found.report.left.push_back({op, reason});
    std::vector<OpSet> planned;
    for (const partition::Part& part : plan_.partition.parts) planned.push_back(part.ops);
    found.report.is_cut = cut.sets != planned;
    found.assessment = assessment_with(cut.left);
    for (const OpSet& ops : cut.sets) {
      const auto trial = trials_of_.find(ops);
      if (trial != trials_of_.end() && trial->second.code) found.codes.push_back(*trial->second.code);
    }
    found.partition = found.report.is_cut ? partition::partition_as(*plan_.model, found.assessment, *plan_.costs,
                                                                    options_.plan.partition, cut.sets)
                                          : plan_.partition;
    return found;
  }

  const Plan& plan_;
  const TryPart& try_part_;
  const PartSearchOptions& options_;
  partition::PartitionOptions how_;  // without explanations, which take long
  const ops::Dependencies graph_;
  std::string first_reason_;  // why what was planned has no code
  std::map<OpSet, PartTrial> trials_of_;
  std::size_t tried_ops_ = 0;  // in all trials
  std::vector<Cut> queue_;
  std::set<std::vector<OpSet>> seen_;
};

// ---- Plans ----

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void take(Plan& plan, Found found) {
  plan.assessment = std::move(found.assessment);
  plan.partition = std::move(found.partition);
  plan.partition.notes = partition::advise(*plan.model, *plan.costs, plan.partition);
}

Cut cut_of(const Plan& plan) {
  Cut cut;
  cut.predicted_us = plan.partition.predicted_us;
  cut.all_cpu_us = plan.partition.all_cpu_us;
  for (const partition::Part& part : plan.partition.parts) {
    for (const std::int32_t op : part.ops) cut.work_us += plan.costs->op(op).cpu;
  }
  return cut;
}

// Rewrites bring more operators to the chip, and these may be what does not fit.
Result<PartSearchReport> without_rewrites(Plan& plan, PartSearchReport report, double cpu_factor,
                                          const TryPart& try_part, const PartSearchOptions& options) {
  PartSearchOptions plain = options;
  plain.plan.rewrites = {};
  plain.plan.rewrites.none = true;
  REEF_ASSIGN_OR_RETURN(Plan other, make_plan(options.given, plain.plan));
  // The same order as among cuts of one model.
  const auto is_better = [&] { return cut_of(other).is_better_than(cut_of(plan), cpu_factor); };
  if (!is_better()) return report;
  REEF_ASSIGN_OR_RETURN(PartSearchReport of_other, find_parts(other, try_part, plain));
  report.trials = of_other.trials += report.trials;
  if (!is_better()) return report;
  of_other.is_cut = true;
  plan = std::move(other);
  plan.partition.notes.emplace_back(
      "no rewrite was made: with rewrites the part does not fit, and the best cut of it is predicted slower "
      "(estimated)");
  return of_other;
}

}  // namespace

Result<PartSearchReport> find_parts(Plan& plan, const TryPart& try_part, const PartSearchOptions& options) {
  const std::int32_t planned = plan.partition.chip_op_count();
  const double cpu_factor = cpu_factor_for(cut_of(plan));
  REEF_ASSIGN_OR_RETURN(Found found, Search(plan, try_part, options).run());
  const PartSearchReport report = found.report;
  std::vector<partition::PartInCode> codes = std::move(found.codes);
  if (report.is_cut) take(plan, std::move(found));
  predict_from_code(plan, std::move(codes));
  if (!report.is_cut) {
    REEF_RETURN_IF_ERROR(leave_last_moves(plan, try_part, options));
    return without_slow_rewrites(plan, report, try_part, options);
  }
  plan.partition.notes.push_back(fmt::format(
      "there is no code for the part that was planned ({}): {}. {} tried; the best cut that has code has {} in {}",
      counted(planned, "operator"), report.reason,
      report.trials == 1 ? "1 part was" : fmt::format("{} parts were", report.trials),
      counted(plan.partition.chip_op_count(), "operator"), counted(std::ssize(plan.partition.parts), "part")));
  if (options.given == nullptr || options.given == plan.model || options.plan.rewrites.none) return report;
  return without_rewrites(plan, report, cpu_factor, try_part, options);
}

TryPart trial_of_generator(int runtime, const Budget& budget) {
  // Parts that are tried have most of their movements in common.
  const auto movements = std::make_shared<lower::RearrangementCache>();
  return [runtime, budget, movements](const ir::Model& model, const partition::Part& part) {
    PartTrial trial;
    PartProgram program{.model = model, .ops = part.ops, .inputs = part.inputs, .outputs = part.outputs};
    program.min_runtime_version = runtime;
    program.refused = &trial.refused;
    program.budget = budget;
    program.crowded = &trial.crowded;
    program.movements = movements.get();
    const auto code = generate_part(program);
    trial.status = code.status();
    if (code.ok()) trial.code = facts_of(*code, part.ops);
    return trial;
  };
}

}  // namespace reef::compiler
