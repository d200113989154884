// SPDX-License-Identifier: Apache-2.0
// What is decided again once a plan's parts have code. Planning predicts times from shapes; code shows what movements
// and rewrites really cost (code_facts.h), which can be ten times as much.
//
// Where nobody said which host it is, a choice must be faster beside a desktop and beside a slow host.
#pragma once

#include <vector>

#include "compiler/part_search.h"

namespace reef::compiler {

// Predicts the parts' times again, from their code. What was advised with the former prediction is advised anew.
void predict_from_code(Plan& plan, std::vector<partition::PartInCode> codes);

// Leaves operators to the CPU that only move elements at the end of the part, such as a TRANSPOSE to channels first,
// where that is faster. Nothing is left where options say what the part is, or that all rewrites are to be made.
Status leave_last_moves(Plan& plan, const TryPart& try_part, const PartSearchOptions& options);

// Takes the plan without rewrites where its code is clearly faster than that of `plan`, whose parts `report` is of.
Result<PartSearchReport> without_slow_rewrites(Plan& plan, PartSearchReport report, const TryPart& try_part,
                                               const PartSearchOptions& options);

}  // namespace reef::compiler
