// SPDX-License-Identifier: Apache-2.0
// reef audit: is a compiled program sound, whatever the speed of the chip's units? (docs/audit.md)
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "audit/audit.h"
#include "commands.h"
#include "compiler/front_end.h"
#include "console.h"
#include "formats/darwinn/listing.h"
#include "formats/darwinn/reader.h"
#include "isa/combination.h"
#include "json_output.h"
#include "limit_flags.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct AuditArguments {
  std::string model;
  bool strict = false;
  bool is_novel = false;
  bool json = false;
  LimitFlags limits;
};

Json finding_json(const audit::Finding& finding) {
  Json json = {{"kind", audit::name_of(finding.kind)},
               {"depends_on_timing", audit::is_timing(finding.kind)},
               {"second", finding.second.to_string()},
               {"tile", finding.tile},
               {"times", finding.times},
               {"sentence", finding.sentence}};
  if (finding.first.row >= 0) json["first"] = finding.first.to_string();
  return json;
}

Json report_json(const audit::AuditReport& report) {
  Json json = {{"sound", report.is_sound()},
               {"sound_as_googles", report.is_sound_as_googles()},
               {"complete", report.complete},
               {"findings", Json::array()},
               {"notes", Json::array()},
               {"not_covered", report.not_covered},
               {"steps", report.statistics.steps},
               {"waits", report.statistics.waits},
               {"reads", report.statistics.reads},
               {"writes", report.statistics.writes},
               {"deepest_queue", report.statistics.deepest_queue}};
  for (const audit::Finding& finding : report.findings) json["findings"].push_back(finding_json(finding));
  for (const audit::Finding& note : report.notes) json["notes"].push_back(finding_json(note));
  return json;
}

Status audit_model(const AuditArguments& arguments) {
  const Budget budget = budget_of(arguments.limits);
  // Its tensors are not looked at, and those of a model that does not run may be wrong: may_resize.
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded,
                        compiler::load_tflite_model(arguments.model, {.may_resize = true}));
  const ir::Model& model = loaded.model;
  Json parts = Json::array();
  int number = 0, unsound = 0;
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Operator& op : graph.operators) {
      if (!darwinn::is_edge_tpu_op(op)) continue;
      const std::string place = fmt::format("{}: Edge TPU op {}", arguments.model, number++);
      const auto options = darwinn::read_custom_options(op.custom_options);
      if (!options.ok()) return options.status().in(place);
      const auto report = audit::audit(options->package, {.budget = budget});
      if (!report.ok()) return report.status().in(place);
      unsound += !(arguments.strict ? report->is_sound() : report->is_sound_as_googles());
      if (arguments.json) {
        parts.push_back(report_json(*report));
      } else {
        print_text("{}\n{}", place, audit::to_text(*report));
      }
    }
  }
  REEF_REQUIRE(number > 0, "{} is not compiled for the Edge TPU; compile it first: reef compile {}", arguments.model,
               arguments.model);
  if (arguments.json) {
    const Json json = {{"model", arguments.model}, {"sound", unsound == 0}, {"edge_tpu_ops", parts}};
    print_json(json);
  }
  std::fflush(stdout);
  if (unsound == 0) return ok_status();
  return invalid_input("{}: {} of {} programs cannot be shown to be sound", arguments.model, unsound, number);
}

Json novelty_json(const isa::Novelty& novelty) {
  return {{"instruction", isa::info(novelty.opcode).mnemonic},
          {"what", novelty.what},
          {"nearest", novelty.nearest},
          {"first_row", novelty.first_row},
          {"times", novelty.times}};
}

// Lists combinations of instruction fields that occur in no public program of Google's. They are no fault, but the
// first place to look where a real chip disagrees.
Status list_novelties(const AuditArguments& arguments) {
  REEF_ASSIGN_OR_RETURN(const compiler::FrontEndResult loaded,
                        compiler::load_tflite_model(arguments.model, {.may_resize = true}));
  REEF_ASSIGN_OR_RETURN(const isa::Listing listing, darwinn::list_programs(loaded.model));
  REEF_REQUIRE(!listing.programs.empty(), "{} is not compiled for the Edge TPU; compile it first: reef compile {}",
               arguments.model, arguments.model);
  const std::int64_t files = isa::combination_table().files;
  Json programs = Json::array();
  std::size_t count = 0;
  for (const isa::NamedProgram& program : listing.programs) {
    const std::vector<isa::Novelty> novelties = isa::novelties_of(program.program);
    count += novelties.size();
    Json list = Json::array();
    for (const isa::Novelty& novelty : novelties) list.push_back(novelty_json(novelty));
    programs.push_back({{"name", program.name}, {"novel", list}});
    if (arguments.json) continue;
    for (const isa::Novelty& novelty : novelties) {
      print_text("{}, row {}: {} {}{} ({} times)\n", program.name, novelty.first_row,
                 isa::info(novelty.opcode).mnemonic, novelty.what,
                 novelty.nearest.empty() ? "" : "; " + novelty.nearest, novelty.times);
    }
  }
  if (arguments.json) {
    const Json json = {{"model", arguments.model}, {"novel", count}, {"counted_files", files}, {"programs", programs}};
    print_json(json);
    return ok_status();
  }
  print_text("{}: {} combinations of fields that none of {} public files of Google's compilers has\n", arguments.model,
             count, files);
  return ok_status();
}

}  // namespace

void add_audit(Command& app, Action& action) {
  auto arguments = std::make_shared<AuditArguments>();
  Command command = app.add_subcommand("audit", "Prove a compiled program free of race conditions");
  command.add_option("model", arguments->model, "A compiled .tflite file (any compiler's)").required();
  command.add_flag("--strict", arguments->strict,
                   "Do not accept the one thing that Google's compilers 15 and 16 leave to timing: how fast a gathered "
                   "vector's lines are taken off the ring");
  command.add_flag("--novel", arguments->is_novel,
                   "List instead what the program does that no public program of Google's does: combinations of "
                   "fields of one instruction, and values of selections. `reef compile --conservative` avoids them");
  command.add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  add_limit_flags(command, arguments->limits);
  command.footer(
      "Exit code 0: sound, or sound but for what Google's own programs leave to timing (see --strict); 1: findings, or "
      "the\n"
      "walk could not be finished. docs/audit.md says what is proved.\n"
      "With --novel the exit code is 0 whatever is found: what is new may be right.\n"
      "Examples:\n  reef audit model_edgetpu.tflite\n  reef audit --novel model_edgetpu.tflite");
  command.callback([arguments, &action] {
    action = [arguments] { return arguments->is_novel ? list_novelties(*arguments) : audit_model(*arguments); };
  });
}

}  // namespace reef::app
