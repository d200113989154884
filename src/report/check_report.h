// SPDX-License-Identifier: Apache-2.0
// `reef check`'s answer: for every operator where it runs, and if that is not the chip, the rule, the place, the cost
// and what to do. As data, as text and as JSON (docs/json.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ir/model.h"
#include "partition/check.h"
#include "partition/cost.h"
#include "partition/partition.h"
#include "passes/rewrite.h"

namespace reef::report {

// The subject of a report. Everything it points to must outlive the report.
struct CheckSubject {
  std::string_view file;                                 // as the user named it
  const ir::Model* given = nullptr;                      // as it was in the file
  const ir::Model* model = nullptr;                      // with rewrites
  const std::vector<std::int32_t>* source_op = nullptr;  // by operator of `model`: its number in `given`, or -1
  const std::vector<passes::Application>* rewrites = nullptr;
  const partition::Assessment* assessment = nullptr;
  const partition::CostModel* costs = nullptr;
  const partition::Partition* partition = nullptr;
  const partition::Partition* without_rewrites = nullptr;  // null: nothing was rewritten
  // Where the file holds a float model: that model, and `given` is what the quantizer would make of it.
  const ir::Model* float_model = nullptr;
  std::string_view not_judged;  // why a float model is not judged so, a clause
  std::string_view hint;        // how more of the model would run on the chip; may be empty
  std::string_view next;        // the next command; may be empty
  // Simulated time of all parts on the virtual device, transfers included, in microseconds; 0 if not simulated. It
  // replaces the estimate.
  double simulated_us = 0;
};

struct CheckTextOptions {
  bool colour = false;
  bool all_ops = false;    // a line for every operator, those on the chip too
  bool all_links = false;  // a table of predicted times over every link
};
std::string check_text(const CheckSubject& subject, const CheckTextOptions& options);
nlohmann::ordered_json check_json(const CheckSubject& subject);

// Parts of it, for others.

// "0-214, 217": runs of ascending numbers.
std::string number_runs(const std::vector<std::int32_t>& numbers);
// "1x20x20x144"; "scalar".
std::string shape_text(const ir::Shape& shape);
// The status that Google's compiler would print for the operator.
ops::GoogleStatus google_status(const partition::Assessment& assessment, const partition::Partition& partition,
                                std::int32_t op);
// Advice on a float model. It names only what works today.
std::string quantizing_advice();
// "0.94 ms", "12 us".
std::string time_text(double us);

}  // namespace reef::report
