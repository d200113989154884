// SPDX-License-Identifier: Apache-2.0
// Reports on passes for people: --explain, --dump and --stop-after of reef convert, quantize and compile.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "command.h"
#include "passes/pass_log.h"

namespace reef::app {

struct PassFlags {
  bool explain = false;
  std::vector<std::string> dumps;
  std::string stop_after;
};

// The options of commands that only run float passes.
void add_pass_flags(Command& command, PassFlags& flags);
// "import", "simplify" and the passes of these stages: what --dump and --stop-after take.
std::vector<std::string> names_of_graphs(std::span<const passes::Stage> stages);

passes::LogRequest log_request(const PassFlags& flags);

// Which pass changed what, in order. The text names a few changes of each run, the JSON array all of them.
std::string pass_text(const passes::PassLog& log);
nlohmann::ordered_json pass_json(const passes::PassLog& log);

// Prints the graph of that name, and says so where the pass found nothing to change.
Status print_graph(const passes::PassLog& log, const std::string& name);

}  // namespace reef::app
