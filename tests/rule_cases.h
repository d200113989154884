// SPDX-License-Identifier: Apache-2.0
// For every rule of the chip a model that breaks it and a neighbour that keeps it and differs in nothing but what the
// rule is about. Both are small; the neighbour fits the chip as a whole.
#pragma once

#include <span>
#include <string_view>

#include "ir/model.h"
#include "ops/chip_support.h"

namespace reef::testing {

struct RuleCase {
  std::string_view id;
  ir::Model (*make)(bool broken);
  int runtime = ops::kNewestRuntime;
};

std::span<const RuleCase> rule_cases();  // several for some rules

// The first case of rule `id`, which must have one.
ir::Model rule_model(std::string_view id, bool broken);

}  // namespace reef::testing
