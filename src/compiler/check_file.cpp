// SPDX-License-Identifier: Apache-2.0
#include "compiler/check_file.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/shell_word.h"
#include "compiler/check_subject.h"
#include "compiler/hints.h"
#include "compiler/part_search.h"
#include "compiler/refusal.h"
#include "compiler/trial_quantization.h"
#include "formats/darwinn/reader.h"

namespace reef::compiler {
namespace {

// Lowering and scheduling take time by the square of the number of operators: 0.5 s for so many, minutes for ten times
// as many. Networks of the collection have 700 at most.
constexpr std::int32_t kMostOperatorsTried = 4000;

// What `reef compile` does: parts that have code. Of very large models the parts are those that the rules
// allow, and a note says so.
Status find_parts_with_code(Plan& plan, const std::shared_ptr<const ir::Model>& given, const PlanOptions& options) {
  if (plan.partition.chip_op_count() > kMostOperatorsTried) {
    plan.partition.notes.push_back(
        fmt::format("code was not generated for {} operators, more than {}: whether it fits into the chip's memory "
                    "shows when they are compiled",
                    plan.partition.chip_op_count(), kMostOperatorsTried));
    return ok_status();
  }
  PartSearchOptions search;
  search.plan = options;
  search.given = given;
  search.is_late = [budget = options.budget] { return budget.is_over(); };
  return find_parts(plan, trial_of_generator(options.runtime, options.budget), search).status();
}

// The sizes that the user gave for inputs, as options of the next command.
std::string shape_options(const InputShapes& shapes) {
  std::string text;
  for (const auto& [name, sizes] : shapes) {
    const std::string value = fmt::format("{}{}{}", name, name.empty() ? "" : ":", fmt::join(sizes, ","));
    text += " --input-shape " + shell_word(value);
  }
  return text;
}

// "reef compile yolo.onnx --data PHOTOS --preprocess yolo"
std::string next_command(const CheckedFile& checked, const PlanOptions& options, const FrontEndOptions& front_end) {
  const std::string model = shell_word(checked.path) + shape_options(front_end.input_shapes);
  if (checked.float_model != nullptr || checked.plan.assessment.is_float()) {
    return checked.not_judged.empty()
               ? fmt::format("reef compile {} --data {}{}", model,
                             checked.float_model->subgraphs[0].inputs.size() == 1 ? "SAMPLES" : "SAMPLES.npz",
                             preprocess_hint(*checked.float_model))
               : "";
  }
  if (checked.plan.partition.parts.empty()) return "";
  return fmt::format("reef compile {}{}", model, options.partition.several_parts ? " -a" : "");
}

// A float model is judged as the quantizer would leave it.
void take_quantized_form(CheckedFile& checked, const PlanOptions& options) {
  if (!partition::assess(*checked.given, partition::CheckOptions{options.runtime}).is_float()) return;
  auto quantized = quantize_on_trial(*checked.given, options.budget);
  if (!quantized.ok()) {
    checked.not_judged = quantized.status().message();
    return;
  }
  checked.float_model = std::exchange(checked.given, std::make_shared<const ir::Model>(std::move(quantized).value()));
}

}  // namespace

report::CheckSubject CheckedFile::subject() const {
  report::CheckSubject subject = check_subject(path, *given, plan);
  if (without_rewrites) subject.without_rewrites = &without_rewrites->partition;
  subject.float_model = float_model.get();
  subject.not_judged = not_judged;
  subject.hint = hint;
  subject.next = next;
  return subject;
}

Result<CheckedFile> check_file(const std::string& path, const PlanOptions& options, const FrontEndOptions& front_end) {
  CheckedFile checked;
  checked.path = path;
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(path, front_end));
  checked.given = std::make_shared<const ir::Model>(std::move(loaded.model));
  REEF_REQUIRE(!checked.given->subgraphs.empty(), "{}: the model has no subgraph", path);
  const auto& operators = checked.given->subgraphs[0].operators;
  REEF_REQUIRE(std::none_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op),
               "{}; `reef run {}` runs it and tells its time, `reef inspect` shows what is in it",
               already_compiled(path).explanation, shell_word(path));
  take_quantized_form(checked, options);
  REEF_RETURN_IF_ERROR(options.budget.check("quantizing the model on trial").in(path));
  auto plan = make_faster_plan(checked.given, options);
  if (!plan.ok()) return plan.status().in(path);
  checked.plan = std::move(plan).value();
  if (!loaded.shape_note.empty()) checked.plan.partition.notes.push_back(loaded.shape_note);
  REEF_RETURN_IF_ERROR(find_parts_with_code(checked.plan, checked.given, options).in(path));
  checked.hint = several_parts_hint(checked.plan, options);
  checked.next = next_command(checked, options, front_end);
  if (checked.plan.model == checked.given) return checked;
  PlanOptions without = options;
  without.rewrites = {};
  without.rewrites.none = true;
  without.partition.explain = false;
  auto plain = make_plan(checked.given, without);
  if (!plain.ok()) return checked;
  if (find_parts_with_code(*plain, checked.given, without).ok()) checked.without_rewrites = std::move(plain).value();
  return checked;
}

}  // namespace reef::compiler
