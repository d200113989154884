// SPDX-License-Identifier: Apache-2.0
// Options that `reef check` and `reef compile` share: what to compile for, what to rewrite, how to partition.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "compiler/plan.h"
#include "schedule/parameter_places.h"

namespace reef::app {

struct PlanFlags {
  int runtime = ops::kNewestRuntime;
  std::string link;
  std::string choose;  // empty: "best", or "first" with --no-rewrites
  std::string cache;   // empty: by predicted time among models and parts, the level's own order in each
  bool no_rewrites = false, all_rewrites = false;
  std::vector<std::string> rewrite, no_rewrite;
  bool several_parts = false;
  std::string intermediate_tensors;  // separated by commas
};

// Adds the options that Google's compiler does not have: --link, --choose, --cache, --rewrite, --no-rewrite,
// --no-rewrites and --all-rewrites.
void add_plan_flags(Command& command, PlanFlags& flags);

// The error for a name that is no link: the nearest known name, and all known ones.
std::string unknown_link(const std::string& name);
// Fails on a link, choice or rewrite that does not exist.
Result<compiler::PlanOptions> plan_options(const PlanFlags& flags);
// Of the parameters of one part, by --cache.
schedule::CacheOrder cache_order(const PlanFlags& flags);

}  // namespace reef::app
