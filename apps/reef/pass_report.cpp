// SPDX-License-Identifier: Apache-2.0
#include "pass_report.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "compiler/graph_files.h"
#include "console.h"
#include "usage.h"

namespace reef::app {
namespace {

// More changes of one run are counted, not named: a transformer has hundreds.
constexpr std::size_t kNamedChanges = 8;

std::string_view stage_of(const passes::PassRun& run) { return run.stage == passes::Stage::kChip ? "chip" : "float"; }

}  // namespace

void add_pass_flags(Command& command, PassFlags& flags) {
  constexpr std::array kStages = {passes::Stage::kFloat};
  const OptionGroup group(command, "Looking at passes");
  command.add_flag("--explain", flags.explain,
                   "Also print which passes changed the graph, how often, and which operators (docs/passes.md)");
  command
      .add_option("--dump", flags.dumps,
                  "Also write the graph behind a pass, as text, beside the output; import: before the first pass, "
                  "simplify: behind the last; may be repeated")
      .option_text("PASS")
      .allow_extra_args(false)
      .transform(one_of(names_of_graphs(kStages)));
  command
      .add_option("--stop-after", flags.stop_after,
                  "Only print the graph behind this pass (or import, simplify), as text; no file is written")
      .option_text("PASS")
      .transform(one_of(names_of_graphs(kStages)));
}

std::vector<std::string> names_of_graphs(std::span<const passes::Stage> stages) {
  std::vector<std::string> names = {std::string(passes::kImported), std::string(passes::kSimplified)};
  const std::vector<std::string> passes = passes::graph_names(stages);
  names.insert(names.end(), passes.begin(), passes.end());
  return names;
}

passes::LogRequest log_request(const PassFlags& flags) {
  passes::LogRequest request{flags.explain, flags.dumps};
  if (!flags.stop_after.empty()) request.graphs.push_back(flags.stop_after);
  return request;
}

std::string pass_text(const passes::PassLog& log) {
  if (log.runs().empty()) return "Passes: none changed the graph\n";
  std::string text = "Passes, in the order in which they changed the graph:\n";
  for (const passes::PassRun& run : log.runs()) {
    text +=
        fmt::format("  {} round {}, {}: {} change{}{}\n", stage_of(run), run.round, run.pass, run.changes,
                    run.changes == 1 ? "" : "s", run.subgraph == 0 ? "" : fmt::format(" in subgraph {}", run.subgraph));
    const std::size_t named = std::min(run.sentences.size(), kNamedChanges);
    for (std::size_t i = 0; i < named; ++i) text += fmt::format("    {}\n", run.sentences[i]);
    if (named < run.sentences.size()) {
      text += fmt::format("    and {} more (--json lists all)\n", run.sentences.size() - named);
    }
  }
  return text;
}

nlohmann::ordered_json pass_json(const passes::PassLog& log) {
  auto json = nlohmann::ordered_json::array();
  for (const passes::PassRun& run : log.runs()) {
    json.push_back({{"stage", stage_of(run)},
                    {"pass", run.pass},
                    {"subgraph", run.subgraph},
                    {"round", run.round},
                    {"changes", run.changes},
                    {"what", run.sentences}});
  }
  return json;
}

Status print_graph(const passes::PassLog& log, const std::string& name) {
  REEF_ASSIGN_OR_RETURN(const std::string text, compiler::graph_text(log, name));
  const bool is_pass = name != passes::kImported && name != passes::kSimplified;
  if (is_pass && log.find(name)->changes == 0) {
    print_error("reef: pass {} found nothing to change; this is the graph as it was given\n", name);
  }
  print_text("{}", text);
  return ok_status();
}

}  // namespace reef::app
