// SPDX-License-Identifier: Apache-2.0
#include "explanation_report.h"

#include <fmt/format.h>

#include "compiler/explain.h"
#include "console.h"
#include "pass_report.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const compiler::PartExplanation& part) {
  Json json = {{"kind", "simulated"},
               {"cycles", part.cycles},
               {"ms", part.ms},
               {"instruction_bytes", part.instruction_bytes},
               {"instruction_pieces", part.chunks},
               {"cached_parameter_bytes", part.cached_bytes},
               {"streamed_parameter_bytes", part.streamed_bytes},
               {"narrow_bytes", part.narrow_bytes},
               {"wide_scratch_lines", part.scratch_lines},
               {"steps", Json::array()},
               {"narrow_memory", Json::array()}};
  for (const compiler::StepExplanation& step : part.steps) {
    json["steps"].push_back({{"what", step.title},
                             {"details", step.details},
                             {"operator", step.op},
                             {"cycles", step.cycles},
                             {"instructions", step.instructions},
                             {"instruction_bytes", step.instruction_bytes}});
  }
  for (const compiler::MemoryObject& object : part.narrow) {
    json["narrow_memory"].push_back({{"what", object.name},
                                     {"begin", object.begin},
                                     {"end", object.end},
                                     {"first_step", object.first_step},
                                     {"last_step", object.last_step}});
  }
  return json;
}

}  // namespace

passes::PassLog log_of(const compiler::CompiledFile& file, const compiler::PipelineResult& result) {
  const passes::PassLog* before = result.float_log(file);
  passes::PassLog log = before == nullptr ? passes::PassLog() : *before;
  log.append(file.plan.log);
  return log;
}

Status print_explanation(const compiler::CompiledFile& file, const compiler::PipelineResult& result) {
  print_text("\n{}: {}", file.input, pass_text(log_of(file, result)));
  for (std::size_t i = 0; i < file.ops.size(); ++i) {
    print_text("\n{}: Edge TPU subgraph {}\n", file.input, i);
    if (file.ops[i].code == nullptr) {
      print_text("no machine code: {}\n", file.ops[i].why_no_code);
      continue;
    }
    REEF_ASSIGN_OR_RETURN(const compiler::PartExplanation part, compiler::explain(*file.plan.model, *file.ops[i].code));
    print_text("{}", compiler::to_text(part));
  }
  return ok_status();
}

Status add_explanations(const compiler::PipelineResult& result, Json& json) {
  std::size_t index = 0;
  for (const compiler::CompileRun& run : result.compiled.runs) {
    for (const compiler::CompiledFile& file : run.files) {
      json["files"][index]["passes"] = pass_json(log_of(file, result));
      Json& parts = json["files"][index++]["edge_tpu_subgraphs"];
      for (std::size_t i = 0; i < file.ops.size(); ++i) {
        if (file.ops[i].code == nullptr) continue;
        REEF_ASSIGN_OR_RETURN(const compiler::PartExplanation part,
                              compiler::explain(*file.plan.model, *file.ops[i].code));
        parts[i]["explanation"] = to_json(part);
      }
    }
  }
  return ok_status();
}

}  // namespace reef::app
