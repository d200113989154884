// SPDX-License-Identifier: Apache-2.0
#include "compiler/check_file.h"

#include <algorithm>

#include "compiler/check_subject.h"
#include "compiler/part_search.h"
#include "compiler/refusal.h"
#include "formats/darwinn/reader.h"

namespace reef::compiler {

report::CheckSubject CheckedFile::subject() const {
  report::CheckSubject subject = check_subject(path, *given, plan);
  if (without_rewrites) subject.without_rewrites = &without_rewrites->partition;
  return subject;
}

Result<CheckedFile> check_file(const std::string& path, const PlanOptions& options, const FrontEndOptions& front_end) {
  CheckedFile checked;
  checked.path = path;
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(path, front_end));
  checked.given = std::make_shared<const ir::Model>(std::move(loaded.model));
  REEF_REQUIRE(!checked.given->subgraphs.empty(), "{}: the model has no subgraph", path);
  const auto& operators = checked.given->subgraphs[0].operators;
  REEF_REQUIRE(std::none_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op), "{}; `reef inspect` shows it",
               already_compiled(path).explanation);
  auto plan = make_plan(checked.given, options);
  if (!plan.ok()) return plan.status().in(path);
  checked.plan = std::move(plan).value();
  if (!loaded.shape_note.empty()) checked.plan.partition.notes.push_back(loaded.shape_note);
  // What `reef compile` does: parts that have code.
  PartSearchOptions search;
  search.plan = options;
  search.given = checked.given;
  const TryPart try_part = trial_of_generator(options.runtime);
  auto report = find_parts(checked.plan, try_part, search);
  if (!report.ok()) return report.status().in(path);
  if (checked.plan.model == checked.given) return checked;
  PlanOptions without = options;
  without.rewrites = {};
  without.rewrites.none = true;
  without.partition.explain = false;
  auto plain = make_plan(checked.given, without);
  if (!plain.ok()) return checked;
  search.plan = without;
  if (find_parts(*plain, try_part, search).ok()) checked.without_rewrites = std::move(plain).value();
  return checked;
}

}  // namespace reef::compiler
