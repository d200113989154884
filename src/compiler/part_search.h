// SPDX-License-Identifier: Apache-2.0
// From the parts that were planned to parts that there is code for.
//
// Planning looks at operators one by one; whether a part has code and fits into the chip's memory shows only when it is
// lowered and scheduled. A part that does not is cut and tried again, in every way that the answer suggests:
//
//   operators without code     are left to the CPU; what remains is planned anew, or the part falls into several
//   memory that is too small   the operator where it is shortest ends the part, or begins it, or is left to the CPU, or
//                              the part becomes two
//
// All ways wait in one queue, the one that is predicted to be fastest first, and the first that has code is the answer.
// A cut that is predicted slower than the CPU alone comes behind all that are not. Among those, times are predicted for
// a host whose CPU is slow enough that the chip pays: whoever compiles for a chip wants it used (partition.cpp).
//
// Each trial generates code, so their number is limited; when the limit is reached, the longest beginning that has code
// is found by bisection. The limit counts operators and not time, so that the answer is the same everywhere; where the
// time runs out, there is no answer at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/plan.h"
#include "lower/lower.h"
#include "partition/partition.h"

namespace reef::compiler {

// What became of generating code for one part.
struct PartTrial {
  Status status;                                             // kUnsupported: cut it; any other failure ends the search
  std::vector<lower::RefusedOp> refused;                     // operators that there is no code for
  std::int32_t crowded = -1;                                 // the operator at which memory is shortest; -1: not known
  std::optional<partition::PartInCode> code = std::nullopt;  // what the code says of its time
};
using TryPart = std::function<PartTrial(const ir::Model&, const partition::Part&)>;

struct PartSearchOptions {
  PlanOptions plan;                             // how the first parts were chosen
  std::shared_ptr<const ir::Model> given = {};  // without rewrites; null: the parts are not looked for there
  int most_trials = 24;                         // of all that was planned; of less, accordingly more
  std::function<bool()> is_late = [] { return false; };
};

struct PartSearchReport {
  std::vector<lower::RefusedOp> left;  // to the CPU, only because there is no code for them where they stand
  int trials = 0;                      // parts that code was generated for, or was not
  bool is_cut = false;                 // the parts are not those that were planned
  std::string reason;                  // if they are not: why those have no code, a clause
};

// Replaces plan.partition by parts that have code (none, where nothing of the model has), marks in plan.assessment what
// is left to the CPU for that, and notes what was done. Times are then predicted from the code (plan.costs). Where
// parts had to be cut and the model was rewritten, they are looked for without rewrites too. Fails with what a trial
// fails with other than kUnsupported, and with kResourceExhausted where is_late says so between two trials.
Result<PartSearchReport> find_parts(Plan& plan, const TryPart& try_part, const PartSearchOptions& options);

// The trial of Reef's own generator, with the chip to itself, for whoever wants to know and not to have the code.
TryPart trial_of_generator(int runtime, const Budget& budget = {});

}  // namespace reef::compiler
