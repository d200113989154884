// SPDX-License-Identifier: Apache-2.0
// reef check: what of a model runs on the Edge TPU, and for the rest why not and what to do.
#include <memory>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "compiler/check_file.h"
#include "compiler/micro_check.h"
#include "compiler/output_check.h"
#include "console.h"
#include "formats/tflite/writer.h"
#include "front_end_flags.h"
#include "graph/written_out_functions.h"
#include "json_output.h"
#include "limit_flags.h"
#include "plan_options.h"
#include "report/check_report.h"
#include "report/micro_report.h"
#include "target_option.h"

namespace reef::app {
namespace {

struct CheckFlags {
  std::string model;
  PlanFlags plan;
  FrontEndFlags front_end;
  bool json = false;
  bool all_ops = false;
  bool all_links = false;  // --link all
  bool strict = false;
  LimitFlags limits;
  TargetFlag target;
  std::string rewritten;  // where the model with its rewrites goes; empty: nowhere
};

// For a microcontroller: what check says, and what TFLite Micro makes of the rest.
Status check_for_micro(const CheckFlags& flags, const compiler::PlanOptions& options,
                       const compiler::FrontEndOptions& front_end) {
  using Json = nlohmann::ordered_json;
  REEF_ASSIGN_OR_RETURN(const micro::AssessOptions board, board_of(flags.target));
  REEF_ASSIGN_OR_RETURN(const compiler::MicroCheckedFile checked,
                        compiler::check_for_micro(flags.model, board, options, front_end));
  if (!flags.rewritten.empty()) {
    REEF_ASSIGN_OR_RETURN(const ir::Model written, compiler::model_to_write(checked));
    REEF_RETURN_IF_ERROR(tflite::save_model(written, flags.rewritten));
  }
  if (flags.json) {
    Json json = checked.chip ? report::check_json(checked.chip->subject()) : Json::object();
    json["micro"] = report::micro_json(flags.model, *checked.model, checked.assessment);
    print_json(json);
  } else {
    if (checked.chip)
      print_exact("{}\n", report::check_text(checked.chip->subject(), {has_colour(), flags.all_ops, flags.all_links}));
    print_exact("{}", report::micro_text(flags.model, *checked.model, checked.assessment));
    for (const passes::Application& application : checked.rewrites) {
      if (application.made) print_text("  rewritten: {}: {}\n", application.rewrite, application.what);
    }
  }
  REEF_REQUIRE(!flags.strict || checked.assessment.is_accepted(), "{}: {} (--strict)", flags.model,
               report::micro_refusal(*checked.model, checked.assessment));
  return ok_status();
}

Status check_file(const CheckFlags& flags, compiler::PlanOptions options) {
  REEF_RETURN_IF_ERROR(compiler::check_files({{flags.rewritten}, {flags.model}, {}, {}}));
  REEF_RETURN_IF_ERROR(compiler::check_ending(flags.rewritten, compiler::Content::kModel));
  REEF_RETURN_IF_ERROR(board_of(flags.target).status());
  options.budget = budget_of(flags.limits);
  REEF_ASSIGN_OR_RETURN(compiler::FrontEndOptions front_end, front_end_options(flags.front_end));
  front_end.budget = options.budget;
  if (flags.target.micro()) return check_for_micro(flags, options, front_end);
  REEF_ASSIGN_OR_RETURN(const compiler::CheckedFile checked, compiler::check_file(flags.model, options, front_end));
  if (!flags.rewritten.empty()) {
    ir::Model written = *checked.plan.model;
    REEF_RETURN_IF_ERROR(graph::write_out_functions(written));
    REEF_RETURN_IF_ERROR(tflite::save_model(written, flags.rewritten));
  }
  const report::CheckSubject subject = checked.subject();
  if (flags.json) {
    print_json(report::check_json(subject));
  } else {
    print_exact("{}", report::check_text(subject, {has_colour(), flags.all_ops, flags.all_links}));
  }
  const partition::Partition& division = checked.plan.partition;
  const auto left = division.ops.size() - static_cast<std::size_t>(division.chip_op_count());
  REEF_REQUIRE(!flags.strict || left == 0, "{}: {} operators stay on the CPU (--strict)", flags.model, left);
  return ok_status();
}

}  // namespace

void add_check(Command& app, Action& action) {
  auto flags = std::make_shared<CheckFlags>();
  Command command = app.add_subcommand(
      "check", "Say for every operator whether the Edge TPU runs it, and if not, why and what to do");
  command.add_option("model", flags->model, "A .tflite or .onnx file").required();
  command.add_option("-m,--min_runtime_version", flags->plan.runtime, "Edge TPU runtime to check for, 10 to 14");
  command.add_flag("-a,--enable_multiple_subgraphs", flags->plan.several_parts,
                   "Several parts, where that is predicted to be faster than one");
  command
      .add_option("-i,--intermediate_tensors", flags->plan.intermediate_tensors,
                  "Names of tensors, separated by commas, at which the part ends")
      .option_text("NAMES");
  add_plan_flags(command, flags->plan);
  add_target_option(command, flags->target, {"edgetpu", "micro", "tflm"});
  add_board_options(command, flags->target);
  add_front_end_flags(command, flags->front_end);
  command.add_flag("--ops", flags->all_ops, "List every operator with its predicted time");
  command
      .add_option("--write-rewritten", flags->rewritten,
                  "Also write the model with its rewrites to this file: an ordinary .tflite for the CPU")
      .option_text("FILE")
      .writes();
  add_limit_flags(command, flags->limits);
  command.add_flag("--strict", flags->strict,
                   "Exit with 1 if an operator stays on the CPU or, with --target, if the model does not run there");
  command.add_flag("--json", flags->json, "Print one JSON object (documented in docs/json.md)");
  command.footer(
      "Float models are judged as if they were quantized. --link all compares links and hosts.\n"
      "Examples:\n  reef check models/reef_creatures_int8.tflite --link all\n"
      "  reef check --target micro models/reef_creatures_int8.tflite\n"
      "  reef check --target tflm --ram 256K --flash 1M models/reef_creatures_int8.tflite");
  command.callback([flags, &action] {
    flags->all_links = flags->plan.link == "all";
    if (flags->all_links) flags->plan.link.clear();
    use_link_of(flags->target, flags->plan);
    const auto options = plan_options(flags->plan);
    if (!options.ok()) refuse_usage(options.status().message());
    action = [flags, options = *options] { return check_file(*flags, options); };
  });
}

}  // namespace reef::app
