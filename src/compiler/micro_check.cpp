// SPDX-License-Identifier: Apache-2.0
#include "compiler/micro_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "emit/compiled_model.h"
#include "formats/darwinn/reader.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "graph/written_out_functions.h"
#include "ir/verify.h"
#include "micro/offline_plan.h"
#include "micro/sdk_ops.h"
#include "ops/settled_shapes.h"
#include "report/micro_report.h"

namespace reef::compiler {
namespace {

constexpr std::uint64_t kLargestModel = std::uint64_t{1} << 31;

bool is_compiled(const ir::Model& model) {
  const auto& operators = model.subgraphs[0].operators;
  return std::any_of(operators.begin(), operators.end(), darwinn::is_edge_tpu_op);
}

bool is_tflite(const Bytes& file) {
  constexpr std::string_view kIdentifier = "TFL3";
  return file.size() >= 8 && std::equal(kIdentifier.begin(), kIdentifier.end(), file.data() + 4);
}

// Sentences about tensors whose declared shape is not the one that their operators give. The operators of Coral's SDK
// look at declared shapes in ways of their own (micro/sdk_ops.h).
std::vector<std::string> wrong_shapes(const ir::Model& model, micro::Target target) {
  ir::Model settled = model;
  std::vector<std::string> sentences;
  for (const ops::ShapeCorrection& correction : ops::settle_shapes(settled).corrections) {
    const ir::Operator& op = model.subgraphs[at(correction.subgraph)].operators[at(correction.op)];
    if (target == micro::Target::kMicro && micro::find_sdk_op(op) != nullptr) continue;
    sentences.push_back(ops::describe(model, correction));
  }
  return sentences;
}

// The file as it is: nothing settled, no standard forms.
Status assess_file(MicroCheckedFile& checked, micro::AssessOptions how) {
  REEF_ASSIGN_OR_RETURN(ir::Model model, tflite::read_model(checked.file));
  REEF_RETURN_IF_ERROR(ir::verify(model));
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no subgraph");
  how.file_bytes = static_cast<std::int64_t>(checked.file.size());
  how.wrong_shapes = wrong_shapes(model, how.target);
  checked.model = std::make_shared<const ir::Model>(std::move(model));
  checked.assessment = micro::assess(*checked.model, how);
  return ok_status();
}

// A plan of memory (micro/offline_plan.h) is for the tensors of the file that brought it.
void drop_offline_plan(ir::Model& model) {
  model.metadata.erase(
      std::remove_if(model.metadata.begin(), model.metadata.end(),
                     [](const ir::Metadata& entry) { return entry.name == micro::kOfflinePlanMetadata; }),
      model.metadata.end());
}

// What rewrites make of it, if TFLite Micro runs more of that.
Status assess_rewritten(MicroCheckedFile& checked, micro::AssessOptions how, const PlanOptions& options,
                        const FrontEndOptions& front_end) {
  REEF_ASSIGN_OR_RETURN(FrontEndResult loaded, load_any_model(checked.path, front_end));
  passes::RewriteOptions rewrites = options.rewrites;
  rewrites.evaluate = cpu_evaluator(options.budget);
  rewrites.fits = [&options](const ir::Model& judged) {
    if (options.budget.is_over()) return std::vector<bool>(judged.subgraphs[0].operators.size(), true);
    return micro::runs_on_micro(judged, micro::Target::kTflm);
  };
  ir::Model changed = std::move(loaded.model);
  REEF_ASSIGN_OR_RETURN(std::vector<passes::Application> made, passes::apply_rewrites(changed, rewrites));
  ops::settle_shapes(changed);
  drop_offline_plan(changed);
  REEF_RETURN_IF_ERROR(ir::verify(changed));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, tflite::write_model(changed));
  how.file_bytes = static_cast<std::int64_t>(bytes.size());
  micro::Assessment assessment = micro::assess(changed, how);
  if (checked.model != nullptr && assessment.refusals.size() >= checked.assessment.refusals.size()) return ok_status();
  assessment.notes.push_back(
      checked.model == nullptr
          ? "The model was converted; `--write-rewritten FILE` writes what was checked."
          : fmt::format(
                "This is the model after rewrites; the file as it is has {} reasons not to run. `--write-rewritten "
                "FILE` writes the rewritten model.",
                checked.assessment.refusals.size()));
  checked.model = std::make_shared<const ir::Model>(std::move(changed));
  checked.file = Bytes(bytes);
  checked.rewrites = std::move(made);
  checked.assessment = std::move(assessment);
  return ok_status();
}

// As compile() would divide it, without code.
Status assess_planned(MicroCheckedFile& checked, micro::AssessOptions how, const PlanOptions& options,
                      const FrontEndOptions& front_end) {
  REEF_ASSIGN_OR_RETURN(checked.chip, check_file(checked.path, for_micro(options), front_end));
  std::vector<emit::CompiledPart> parts;
  for (const partition::Part& part : checked.chip->plan.partition.parts) {
    parts.push_back({part.ops, part.inputs, part.outputs, {}});
  }
  auto divided = emit::compiled_model(*checked.chip->plan.model, parts);
  if (!divided.ok()) return divided.status();
  checked.model = std::make_shared<const ir::Model>(std::move(*divided));
  how.file_bytes = static_cast<std::int64_t>(checked.file.size());
  how.file_bytes_are_exact = false;
  checked.file = {};
  checked.assessment = micro::assess(*checked.model, how);
  return ok_status();
}

}  // namespace

Result<MicroCheckedFile> check_for_micro(const std::string& path, const micro::AssessOptions& board,
                                         const PlanOptions& options, const FrontEndOptions& front_end) {
  MicroCheckedFile checked;
  checked.path = path;
  REEF_ASSIGN_OR_RETURN(checked.file, read_file(path, kLargestModel));
  const bool has_model = is_tflite(checked.file);
  if (has_model) REEF_RETURN_IF_ERROR(assess_file(checked, board).in(path));
  if (board.target == micro::Target::kMicro) {
    if (!has_model || !is_compiled(*checked.model))
      REEF_RETURN_IF_ERROR(assess_planned(checked, board, options, front_end));
  } else if (!has_model ||
             (!checked.assessment.is_accepted() && !options.rewrites.none && !is_compiled(*checked.model))) {
    const Status status = assess_rewritten(checked, board, options, front_end);
    if (!status.ok() && !has_model) return status;  // a file that Reef cannot run may still be judged as it is
  }
  return checked;
}

Result<ir::Model> model_to_write(const MicroCheckedFile& checked) {
  ir::Model model = checked.chip ? *checked.chip->plan.model : *checked.model;
  ops::settle_shapes(model);
  drop_offline_plan(model);
  REEF_RETURN_IF_ERROR(graph::write_out_functions(model));
  return model;
}

PlanOptions for_micro(PlanOptions options) {
  options.cpu_runs = [](const ir::Model& model) { return micro::runs_on_micro(model, micro::Target::kMicro); };
  return options;
}

Status admit_for_micro(const CompiledFile& file) {
  REEF_ASSIGN_OR_RETURN(const ir::Model model, tflite::read_model(Bytes(*file.content)));
  micro::AssessOptions how;
  how.target = micro::Target::kMicro;
  how.file_bytes = file.output_bytes;
  const micro::Assessment assessment = micro::assess(model, how);
  if (assessment.is_accepted()) return ok_status();
  return invalid_input("{}", report::micro_refusal(model, assessment));
}

}  // namespace reef::compiler
