// SPDX-License-Identifier: Apache-2.0
// reef retarget: a model's weights and quantization in a package compiled for another model of that architecture.
#include <memory>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/output_place.h"
#include "commands.h"
#include "compiler/front_end.h"
#include "compiler/output_check.h"
#include "console.h"
#include "formats/tflite/reader.h"
#include "ir/describe.h"
#include "json_output.h"
#include "limit_flags.h"
#include "retarget/retarget.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct RetargetOptions {
  std::string compiled;  // the template
  std::string model;
  std::string output;
  std::string source;
  bool dry_run = false;
  bool report = false;
  bool json = false;
  LimitFlags limits;
};

void print_summary(const RetargetOptions& options, const retarget::Report& report) {
  print_text("{} tensor ops: {} computed for the model, {} copies\n", report.tensor_ops,
             report.tensor_ops - report.copies, report.copies);
  print_text("parameters: {} of {} bytes belong to {} layers; {} changed\n", report.replaced_parameter_bytes,
             report.parameter_bytes, report.layers, report.changed_parameter_bytes);
  print_text("instructions: {} constants, {} changed\n", report.constants, report.instructions.size());
  print_text("caching token: {:016x} -> {:016x}\n", report.old_token, report.new_token);
  for (const std::string& sentence : report.metadata) print_text("{}\n", sentence);
  for (const std::string& sentence : report.notes) print_text("note: {}\n", sentence);
  if (!options.dry_run) print_text("wrote {}\n", options.output);
}

void print_changes(const retarget::Report& report) {
  print_text("\n");
  for (const retarget::ParameterChange& change : report.parameters) {
    print_text("{} parameters, from byte {}: {} bytes, {} changed  {}\n", change.is_cached ? "cached" : "streamed",
               change.offset, change.bytes, change.changed, change.what);
  }
  for (const retarget::InstructionChange& change : report.instructions) {
    print_text("instruction {:>6}  {:<16} {:08x} -> {:08x}  {}\n", change.instruction, change.field, change.before,
               change.after, change.what);
  }
}

Json report_json(const RetargetOptions& options, const retarget::Report& report) {
  Json json = {{"template", options.compiled},
               {"model", options.model},
               {"output", options.dry_run ? "" : options.output},
               {"tensor_ops", report.tensor_ops},
               {"copies", report.copies},
               {"layers", report.layers},
               {"parameter_bytes", report.parameter_bytes},
               {"replaced_parameter_bytes", report.replaced_parameter_bytes},
               {"changed_parameter_bytes", report.changed_parameter_bytes},
               {"constants", report.constants},
               {"old_token", fmt::format("{:016x}", report.old_token)},
               {"new_token", fmt::format("{:016x}", report.new_token)},
               {"metadata", report.metadata},
               {"notes", report.notes},
               {"parameters", Json::array()},
               {"instructions", Json::array()}};
  for (const retarget::ParameterChange& change : report.parameters) {
    json["parameters"].push_back({{"blob", change.is_cached ? "cached" : "streamed"},
                                  {"offset", change.offset},
                                  {"bytes", change.bytes},
                                  {"changed", change.changed},
                                  {"what", change.what}});
  }
  for (const retarget::InstructionChange& change : report.instructions) {
    json["instructions"].push_back({{"instruction", change.instruction},
                                    {"field", change.field},
                                    {"before", change.before},
                                    {"after", change.after},
                                    {"what", change.what}});
  }
  return json;
}

Status retarget_file(const RetargetOptions& options) {
  const Budget budget = budget_of(options.limits);
  REEF_RETURN_IF_ERROR(
      check_outputs(std::vector{options.output}, std::vector{options.model, options.compiled, options.source}));
  REEF_RETURN_IF_ERROR(compiler::check_ending(options.output, compiler::Content::kModel));
  REEF_ASSIGN_OR_RETURN(const Bytes compiled, read_file(options.compiled, tflite::kMaxFileBytes));
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult model, compiler::load_tflite_model(options.model));
  if (!model.shape_note.empty()) print_error("reef: {}: {}\n", options.model, model.shape_note);
  retarget::Options how;
  how.budget = budget;
  compiler::FrontEndResult source;
  if (!options.source.empty()) {
    REEF_ASSIGN_OR_RETURN(source, compiler::load_tflite_model(options.source));
    how.source = &source.model;
  }
  const auto result = retarget::retarget(compiled, model.model, how);
  if (!result.ok()) return result.status().in(options.compiled);
  if (!options.dry_run) REEF_RETURN_IF_ERROR(write_file(options.output, std::span(result->file)));
  if (options.json) {
    print_json(report_json(options, result->report));
    return ok_status();
  }
  print_summary(options, result->report);
  if (options.report) print_changes(result->report);
  return ok_status();
}

}  // namespace

void add_retarget(Command& app, Action& action) {
  auto options = std::make_shared<RetargetOptions>();
  Command command = app.add_subcommand(
      "retarget", "Put a model's weights into a package compiled for another model of its architecture");
  command.add_option("model", options->model, "The new model: a quantized .tflite file").required();
  command.add_option("--template", options->compiled, "A file that Google's compiler made (..._edgetpu.tflite)")
      .option_text("FILE")
      .required();
  Option output = command.add_option("-o,--output", options->output, "Where the result goes").writes();
  const Option dry_run = command.add_flag("--dry-run", options->dry_run, "Do everything but write the result");
  output.excludes(dry_run);
  command.add_option(
      "--source", options->source,
      "The model that the template was compiled from: everything that is replaced is then checked first");
  const Option report = command.add_flag("--report", options->report, "List every place that changed");
  command.add_flag("--json", options->json, "Print one JSON object (documented in docs/json.md)").excludes(report);
  add_limit_flags(command, options->limits);
  command.footer("Example:\n  reef retarget --template old_edgetpu.tflite new.tflite -o new_edgetpu.tflite");
  command.callback([options, &action] {
    if (options->output.empty() && !options->dry_run) refuse_missing("-o or --dry-run");
    action = [options] { return retarget_file(*options); };
  });
}

}  // namespace reef::app
