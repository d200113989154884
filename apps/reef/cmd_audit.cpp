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
#include "formats/darwinn/reader.h"
#include "limit_flags.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

struct AuditArguments {
  std::string model;
  bool strict = false;
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
    print_exact("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  }
  std::fflush(stdout);
  if (unsound == 0) return ok_status();
  return invalid_input("{}: {} of {} programs cannot be shown to be sound", arguments.model, unsound, number);
}

}  // namespace

void add_audit(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = app.add_subcommand(
      "audit",
      "Prove from a compiled program's instructions that nothing in it depends on the speed of the chip's units");
  command->add_option("model", arguments->model, "A compiled .tflite file (any compiler's)")->required();
  command->add_flag(
      "--strict", arguments->strict,
      "Do not accept the one thing that Google's compilers 15 and 16 leave to timing: how fast a gathered "
      "vector's lines are taken off the ring");
  command->add_flag("--json", arguments->json, "Print one JSON object (documented in docs/json.md)");
  add_limit_flags(*command, arguments->limits);
  command->footer(
      "Exit code 0: sound, or sound but for what Google's own programs leave to timing (see --strict); 1: findings, or "
      "the\n"
      "walk could not be finished. docs/audit.md says what is proved.\n"
      "Example:\n  reef audit model_edgetpu.tflite");
  command->callback([arguments, &action] { action = [arguments] { return audit_model(*arguments); }; });
}

}  // namespace reef::app
