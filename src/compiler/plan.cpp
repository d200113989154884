// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chip/links.h"
#include "execute/cpu/evaluate.h"
#include "ir/tensor_names.h"
#include "ir/verify.h"
#include "ops/own_code.h"
#include "ops/settled_shapes.h"
#include "partition/advice.h"

namespace reef::compiler {
namespace {

// An operator that a rewrite did not touch still computes the tensor of that name, with the same type of operator.
std::vector<std::int32_t> source_ops(const ir::Subgraph& before, const ir::Subgraph& after) {
  const auto key = [](const ir::Subgraph& graph, const ir::Operator& op) {
    const std::int32_t tensor = op.outputs.empty() ? -1 : op.outputs[0];
    return std::pair(op.type, tensor < 0 ? std::string() : graph.tensors[at(tensor)].name);
  };
  std::multimap<std::pair<std::string, std::string>, std::int32_t> numbers;
  for (std::size_t i = 0; i < before.operators.size(); ++i) {
    numbers.emplace(key(before, before.operators[i]), static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> result;
  for (const ir::Operator& op : after.operators) {
    const auto [first, last] = numbers.equal_range(key(after, op));
    result.push_back(first == last ? -1 : first->second);
    if (first != last) numbers.erase(first);  // names need not be unique: each is used once, in order
  }
  return result;
}

// Rewrites try functions of 256 values and compute a few constants: microseconds an operator, for a few thousand
// operators at most. A file made to keep us busy would take any number of them: what is beyond this is left as it is.
constexpr cpu::EvaluationBound kTrials = {.work = 2e9};

// Nothing is rewritten, and the part that is chosen is the one that Google's compiler would choose.
bool chooses_as_google(const PlanOptions& options) {
  return options.rewrites.none && options.rewrites.enable.empty() &&
         options.partition.choice == partition::PartitionOptions::Choice::kFirst;
}

// What Google's compiler would leave on the CPU stays there.
void leave_own_code(Plan& plan) {
  const std::vector<ir::Operator>& ops = plan.model->subgraphs[0].operators;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops::is_own_code(ops[i].type)) continue;
    partition::leave_without_code(plan.assessment, static_cast<std::int32_t>(i),
                                  fmt::format("{} is left on the CPU by Google's compiler", ops[i].type));
  }
}

// Microseconds of one inference that rewrites answer for. Parameters that are sent with every inference do not count:
// a network of the same size that needs no rewrites sends them, too, and the verdict on the whole tells of it.
double without_streaming(const partition::Partition& partition) {
  double us = partition.predicted_us;
  for (const partition::Part& part : partition.parts) us -= part.cost.streaming;
  return us;
}

bool is_clearly_faster(const partition::Partition& one, const partition::Partition& other) {
  return without_streaming(one) < kClearlyFaster * without_streaming(other);
}

// The best partition of the same plan on another host.
Result<partition::Partition> partition_on(const chip::LinkProfile& link, const Plan& plan, const PlanOptions& options) {
  partition::CostOptions costs = options.costs;
  costs.link = &link;
  partition::PartitionOptions how = options.partition;
  how.explain = false;
  return partition::partition(*plan.model, plan.assessment, partition::CostModel(*plan.model, costs), how);
}

// Is `plain` faster on a slow host, too?
bool is_faster_on_slow_host(const Plan& plain, const Plan& plan, const PlanOptions& options) {
  const chip::LinkProfile* slow = chip::find_link(kSlowHost);
  const auto without = partition_on(*slow, plain, options), with = partition_on(*slow, plan, options);
  return without.ok() && with.ok() && is_clearly_faster(*without, *with);
}

std::set<std::string> used_rewrites(const Plan& plan) {
  std::set<std::string> names;
  for (const passes::Application& application : plan.rewrites) {
    if (application.made) names.insert(std::string(application.rewrite));
  }
  return names;
}

// "unroll-lstm, sum-of-squares": the rewrites that were made.
std::string names_of(const Plan& plan) { return fmt::format("{}", fmt::join(used_rewrites(plan), ", ")); }

// Is `other` clearly faster than `plan`, on the host that is asked for and, where none was named, on a slow one?
bool is_better(const Plan& other, const Plan& plan, const PlanOptions& options) {
  if (other.partition.parts.empty() || !is_clearly_faster(other.partition, plan.partition)) return false;
  return !options.host_is_assumed || is_faster_on_slow_host(other, plan, options);
}

void say_what_is_not_made(const Plan& plan, const std::string& names, Plan& result) {
  result.partition.notes.push_back(fmt::format(
      "rewrites ({}) would bring {} of {} operators to the Edge TPU, and are not made because the model would take "
      "{:.2f} ms instead of {:.2f} (estimated); --all-rewrites makes them",
      names, plan.partition.chip_op_count(), plan.model->subgraphs[0].operators.size(),
      plan.partition.predicted_us / 1000, result.partition.predicted_us / 1000));
}

// Where the part on the chip ends too late, a rewrite may have brought its end there, such as an upsampling of small
// results whose large ones are slow to send: each rewrite is left out in turn, and the best plan of these is taken if
// it is better.
std::optional<Plan> without_one_rewrite(const std::shared_ptr<const ir::Model>& model, const Plan& plan,
                                        const PlanOptions& options) {
  if (!partition::ends_too_late(*plan.model, *plan.costs, plan.partition)) return std::nullopt;
  std::optional<Plan> best;
  std::string left_out;
  for (const std::string& name : used_rewrites(plan)) {
    PlanOptions fewer = options;
    fewer.rewrites.disable.push_back(name);
    auto other = make_plan(model, fewer);
    if (!other.ok() || !is_better(*other, best ? *best : plan, options)) continue;
    best = std::move(other).value();
    left_out = name;
  }
  if (best) say_what_is_not_made(plan, left_out, *best);
  return best;
}

// What is left to a CPU without all of TFLite's operators, by those that it has. `rewrites` say what fits the chip.
Status rewrite_for_cpu(const PlanOptions& options, passes::RewriteOptions rewrites, ir::Model& model, Plan& plan) {
  rewrites.fits = [&options, on_chip = rewrites.fits](const ir::Model& judged) {
    std::vector<bool> fits = on_chip(judged);
    const std::vector<bool> on_cpu = options.cpu_runs(judged);
    for (std::size_t i = 0; i < std::min(fits.size(), on_cpu.size()); ++i) fits[i] = fits[i] || on_cpu[i];
    return fits;
  };
  REEF_ASSIGN_OR_RETURN(std::vector<passes::Application> further, passes::apply_rewrites(model, rewrites, plan.log));
  for (passes::Application& application : further) {
    if (application.made) plan.rewrites.push_back(std::move(application));
  }
  return ok_status();
}

}  // namespace

void say_what_is_not_made(const Plan& plan, Plan& result) { say_what_is_not_made(plan, names_of(plan), result); }

graph::Evaluate cpu_evaluator(const Budget& budget) {
  return [budget, evaluate = std::make_shared<cpu::Evaluator>(kTrials)](
             ir::Model model, std::span<const std::vector<std::uint8_t>> inputs) -> Result<std::vector<cpu::Value>> {
    REEF_RETURN_IF_ERROR(budget.check("trying rewrites"));
    return (*evaluate)(std::move(model), inputs);
  };
}

Result<Plan> make_plan(std::shared_ptr<const ir::Model> model, const PlanOptions& options) {
  Plan plan;
  const partition::CheckOptions check{options.runtime};
  passes::RewriteOptions rewrites = options.rewrites;
  rewrites.runtime = options.runtime;
  plan.log = passes::PassLog(options.log);
  if (!rewrites.evaluate) rewrites.evaluate = cpu_evaluator(options.budget);
  rewrites.fits = [&check, &options](const ir::Model& judged) {
    // When time is up everything is said to fit: what fits is left alone, so that the rewrites end at once.
    if (options.budget.is_over()) return std::vector<bool>(judged.subgraphs[0].operators.size(), true);
    std::vector<bool> fits;
    for (const partition::OpVerdict& verdict : partition::assess(judged, check).ops) fits.push_back(verdict.fits());
    return fits;
  };
  ir::Model changed = *model;
  REEF_ASSIGN_OR_RETURN(plan.rewrites, passes::apply_rewrites(changed, rewrites, plan.log));
  if (options.cpu_runs) REEF_RETURN_IF_ERROR(rewrite_for_cpu(options, rewrites, changed, plan));
  // Values that fold-constants found may settle shapes that nobody could know when the model entered.
  const ops::SettledShapes settled = ops::settle_shapes(changed);
  // An operator that refuses its operands is judged not to fit; scales that no longer fit a size are an error.
  if (!settled.corrections.empty()) REEF_RETURN_IF_ERROR(ir::verify(changed));
  const bool is_changed = !settled.corrections.empty() ||
                          std::any_of(plan.rewrites.begin(), plan.rewrites.end(), [](const auto& a) { return a.made; });
  plan.source_op = source_ops(model->subgraphs[0], changed.subgraphs[0]);
  const bool is_renamed = ir::has_equal_names(changed);
  if (is_renamed) ir::name_apart(changed);
  plan.model = is_changed || is_renamed ? std::make_shared<const ir::Model>(std::move(changed)) : model;
  REEF_RETURN_IF_ERROR(options.budget.check("rewriting the model"));
  plan.assessment = partition::assess(*plan.model, check);
  if (chooses_as_google(options)) leave_own_code(plan);
  plan.costs = std::make_shared<const partition::CostModel>(*plan.model, options.costs);
  REEF_ASSIGN_OR_RETURN(plan.partition,
                        partition::partition(*plan.model, plan.assessment, *plan.costs, options.partition));
  for (std::string& note : partition::advise(*plan.model, *plan.costs, plan.partition)) {
    plan.partition.notes.push_back(std::move(note));
  }
  return plan;
}

Result<Plan> make_faster_plan(std::shared_ptr<const ir::Model> model, const PlanOptions& options) {
  REEF_ASSIGN_OR_RETURN(Plan plan, make_plan(model, options));
  const bool is_settled = options.all_rewrites || options.rewrites.none || !options.rewrites.enable.empty() ||
                          options.partition.choice == partition::PartitionOptions::Choice::kFirst;
  if (is_settled || names_of(plan).empty() || plan.partition.parts.empty()) return plan;
  std::optional<Plan> fewer = without_one_rewrite(model, plan, options);
  PlanOptions without = options;
  without.rewrites = {};
  without.rewrites.none = true;
  auto plain = make_plan(model, without);
  const bool none_is_best = plain.ok() && is_better(*plain, fewer ? *fewer : plan, options);
  if (!none_is_best) return fewer ? std::move(*fewer) : std::move(plan);
  Plan result = std::move(plain).value();
  say_what_is_not_made(plan, names_of(plan), result);
  return result;
}

}  // namespace reef::compiler
