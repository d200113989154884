// SPDX-License-Identifier: Apache-2.0
// The first half of compiling, and all of `reef check`: what of a model would run on the Edge TPU, and why the rest
// would not.
//
//   rewrite -> assess (each operator by itself) -> cost -> partition
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"
#include "partition/check.h"
#include "partition/cost.h"
#include "partition/partition.h"
#include "passes/pass_log.h"

namespace reef::compiler {

struct PlanOptions {
  int runtime = ops::kNewestRuntime;  // -m
  passes::RewriteOptions rewrites;    // evaluator, runtime and predicate are filled in
  partition::CostOptions costs;
  partition::PartitionOptions partition;
  bool all_rewrites = false;  // rewrites are made also where they are predicted to cost time (make_faster_plan)
  // Nobody said which host it is: costs.link is an assumption. The host may as well be a slow one, beside which the
  // chip is worth more (make_faster_plan).
  bool host_is_assumed = true;
  Budget budget = {};
  // Which operators the runtime beside the chip has, where it is not all of TFLite (--target micro): what neither has
  // is rewritten to what one of them has. Empty: the runtime has everything.
  passes::FitsPredicate cpu_runs = {};
  passes::LogRequest log = {};  // what Plan::log shall hold
};

struct Plan {
  std::shared_ptr<const ir::Model> model;  // with rewrites
  std::vector<passes::Application> rewrites;
  passes::PassLog log;  // of the passes that made them
  // By operator of `model`: its number in the model as it was given; -1: made by a rewrite.
  std::vector<std::int32_t> source_op;
  partition::Assessment assessment;
  std::shared_ptr<const partition::CostModel> costs;
  partition::Partition partition;
};

// `model` must be verified. Fails on an unknown rewrite or intermediate tensor, or when a rewrite fails.
Result<Plan> make_plan(std::shared_ptr<const ir::Model> model, const PlanOptions& options);

// The same, but without rewrites where these are predicted to make the model slower by more than the prediction is
// worth, parameters that are sent with every inference aside; a note then says so. Where the host is only assumed, they
// must make it slower on a Raspberry Pi 4 as well: a file whose work stays on the CPU because that of a desktop is fast
// would be useless there. Rewrites that `options` name, and those of a model that has nothing for the chip without
// them, are made in any case.
Result<Plan> make_faster_plan(std::shared_ptr<const ir::Model> model, const PlanOptions& options);

// A model must be faster than this times another one's time to be clearly faster. By shapes, predicted times are within
// 15 % of simulated ones on most networks (docs/performance.md): rewrites that seem to lose less than that are made.
inline constexpr double kClearlyFaster = 0.85;
// The slowest host whose figures are not a guess.
inline constexpr std::string_view kSlowHost = "usb3-rpi4";

// Notes in `result`, which has no rewrites, what those of `plan` would bring to the chip and at which price.
void say_what_is_not_made(const Plan& plan, Plan& result);

// Runs a model on the CPU: what rewrites use to try values.
graph::Evaluate cpu_evaluator(const Budget& budget = {});

}  // namespace reef::compiler
