// SPDX-License-Identifier: Apache-2.0
#include "compiler/choices_by_code.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "ops/dependencies.h"
#include "ops/registry.h"
#include "partition/advice.h"
#include "partition/candidates.h"

namespace reef::compiler {
namespace {

using partition::OpSet;

// Predictions from code are within 2 % of simulated times on average: what gains less is left as it is.
constexpr double kWorthLeaving = 0.95;

struct Time {
  double us = 0, streaming_us = 0;  // of one inference; the part of it that the chip waits for parameters
};

// With the parts that the plan has, on another host.
Time time_on(const chip::LinkProfile& link, const Plan& plan) {
  partition::CostOptions options = plan.costs->options();
  options.link = &link;
  const partition::CostModel costs = partition::CostModel(*plan.model, options).with_code(plan.costs->codes());
  Time time;
  for (std::int32_t op = 0; op < std::ssize(plan.model->subgraphs[0].operators); ++op) time.us += costs.op(op).cpu;
  for (const partition::Part& part : plan.partition.parts) {
    const partition::PartCost cost = costs.part(part.ops, part.inputs, part.outputs);
    time.us += cost.total();
    time.streaming_us += cost.streaming;
    for (const std::int32_t op : part.ops) time.us -= costs.op(op).cpu;
  }
  return time;
}

// `is_faster(time of other, time of plan)` on the host that was asked for and, where none was, on a slow one, too.
template <typename IsFaster>
bool is_faster_everywhere(const Plan& other, const Plan& plan, const PlanOptions& options, const IsFaster& is_faster) {
  const chip::LinkProfile* link = plan.costs->options().link;
  if (!is_faster(time_on(*link, other), time_on(*link, plan))) return false;
  const chip::LinkProfile* slow = chip::find_link(kSlowHost);
  return !options.host_is_assumed || is_faster(time_on(*slow, other), time_on(*slow, plan));
}

// A part without those of its operators that move elements and whose results nothing in it reads.
OpSet without_last_moves(const Plan& plan, const ops::Dependencies& graph, const OpSet& part) {
  OpSet rest = part;
  for (auto op = part.rbegin(); op != part.rend(); ++op) {
    const auto& next = graph.successors(*op);
    const bool is_last =
        std::none_of(next.begin(), next.end(), [&](auto n) { return std::binary_search(rest.begin(), rest.end(), n); });
    if (is_last && ops::form_of(plan.model->subgraphs[0].operators[at(*op)]) == ops::Form::kMove) {
      rest.erase(std::lower_bound(rest.begin(), rest.end(), *op));
    }
  }
  return rest;
}

bool is_settled(const PlanOptions& options) {
  return options.all_rewrites || options.partition.choice == partition::PartitionOptions::Choice::kFirst ||
         !options.partition.intermediate_tensors.empty() || options.partition.max_ops >= 0;
}

}  // namespace

void predict_from_code(Plan& plan, std::vector<partition::PartInCode> codes) {
  if (codes.empty()) return;
  std::vector<std::string>& notes = plan.partition.notes;
  for (const std::string& old : partition::advise(*plan.model, *plan.costs, plan.partition)) std::erase(notes, old);
  plan.costs = std::make_shared<const partition::CostModel>(plan.costs->with_code(std::move(codes)));
  for (partition::Part& part : plan.partition.parts) {
    const partition::PartCost cost = plan.costs->part(part.ops, part.inputs, part.outputs);
    plan.partition.predicted_us += cost.total() - part.cost.total();
    part.cost = cost;
  }
  std::vector<std::string> advice = partition::advise(*plan.model, *plan.costs, plan.partition);
  notes.insert(notes.begin(), std::make_move_iterator(advice.begin()), std::make_move_iterator(advice.end()));
}

Status leave_last_moves(Plan& plan, const TryPart& try_part, const PartSearchOptions& options) {
  if (is_settled(options.plan) || plan.partition.parts.size() != 1 || plan.costs->codes().empty()) return ok_status();
  const ops::Dependencies graph(*plan.model);
  const OpSet& all = plan.partition.parts[0].ops;
  const OpSet rest = without_last_moves(plan, graph, all);
  if (rest.empty() || rest.size() == all.size()) return ok_status();
  partition::PartitionOptions how = options.plan.partition;
  how.explain = false;
  Plan other = plan;
  const auto predict = [&](const partition::Assessment& assessment) {
    other.partition = partition::partition_as(*plan.model, assessment, *other.costs, how, {rest});
    return is_faster_everywhere(other, plan, options.plan, [](const Time& without, const Time& with) {
      return without.us < kWorthLeaving * with.us;
    });
  };
  if (!predict(plan.assessment)) return ok_status();
  const partition::Part& shorter = other.partition.parts[0];
  const PartTrial trial = try_part(*plan.model, {shorter.ops, shorter.inputs, shorter.outputs, {}});
  if (!trial.status.ok()) return trial.status.code() == StatusCode::kUnsupported ? ok_status() : trial.status;
  if (!trial.code) return ok_status();
  other.costs = std::make_shared<const partition::CostModel>(plan.costs->with_code({*trial.code}));
  if (!predict(plan.assessment)) return ok_status();
  std::vector<std::string>& notes = other.partition.notes;
  notes = plan.partition.notes;
  for (const std::string& old : partition::advise(*plan.model, *plan.costs, plan.partition)) std::erase(notes, old);
  for (std::string& advice : partition::advise(*other.model, *other.costs, other.partition)) {
    notes.push_back(std::move(advice));
  }
  const std::size_t count = all.size() - rest.size();
  notes.push_back(
      fmt::format("the last {} only move{} elements and {} left to the CPU: {:.2f} ms instead of {:.2f} "
                  "(estimated); --all-rewrites leaves nothing",
                  count == 1 ? "operator" : fmt::format("{} operators", count), count == 1 ? "s" : "",
                  count == 1 ? "is" : "are", other.partition.predicted_us / 1000, plan.partition.predicted_us / 1000));
  plan = std::move(other);
  return ok_status();
}

Result<PartSearchReport> without_slow_rewrites(Plan& plan, PartSearchReport report, const TryPart& try_part,
                                               const PartSearchOptions& options) {
  const PlanOptions& how = options.plan;
  const bool has_choice = options.given != nullptr && options.given != plan.model && !is_settled(how) &&
                          !how.rewrites.none && how.rewrites.enable.empty() && !plan.costs->codes().empty();
  if (!has_choice) return report;
  PartSearchOptions plain = options;
  plain.plan.rewrites = {};
  plain.plan.rewrites.none = true;
  REEF_ASSIGN_OR_RETURN(Plan other, make_plan(options.given, plain.plan));
  const auto is_better = [&] {
    return !other.partition.parts.empty() &&
           is_faster_everywhere(other, plan, how, [](const Time& without, const Time& with) {
             return without.us - without.streaming_us < kClearlyFaster * (with.us - with.streaming_us);
           });
  };
  if (!is_better()) return report;
  REEF_ASSIGN_OR_RETURN(PartSearchReport of_other, find_parts(other, try_part, plain));
  report.trials = of_other.trials += report.trials;
  if (!is_better()) return report;
  say_what_is_not_made(plan, other);
  plan = std::move(other);
  return of_other;
}

}  // namespace reef::compiler
