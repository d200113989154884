// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile_json.h"

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "compiler/check_subject.h"
#include "compiler/google_text.h"
#include "compiler/quantize_json.h"

namespace reef::compiler {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(Refusal::Kind kind) {
  switch (kind) {
    case Refusal::Kind::kNotParsed:
      return "not_parsed";
    case Refusal::Kind::kNotQuantized:
      return "not_quantized";
    case Refusal::Kind::kAlreadyCompiled:
      return "already_compiled";
    case Refusal::Kind::kFailed:
      return "failed";
    case Refusal::Kind::kTimeout:
      return "timeout";
    case Refusal::Kind::kRequest:
      return "request";
  }
  return "";
}

Json attempts_json(const std::vector<Attempt>& attempts) {
  Json list = Json::array();
  for (const Attempt& attempt : attempts) {
    list.push_back({{"operations", attempt.ops},
                    {"intermediate_tensors", attempt.tensors},
                    {"compiled", attempt.status.ok()},
                    {"reason", attempt.status.message()}});
  }
  return list;
}

Json file_json(const CompileOptions& options, const CompiledFile& file) {
  Json json = {{"source", file.source},
               {"input", file.input},
               {"input_bytes", file.input_bytes},
               {"output", file.output},
               {"output_bytes", file.output_bytes},
               {"log", file.log},
               {"edge_tpu_subgraphs", Json::array()},
               {"operations", file.plan.model->subgraphs[0].operators.size()},
               {"operations_on_chip", file.plan.partition.chip_op_count()},
               {"parts_tried", file.search.trials},
               {"was_cut", file.search.is_cut},
               {"verified", file.verified.done},
               {"memory",
                {{"kind", "estimated"},
                 {"cached_bytes", file.cached_bytes},
                 {"remaining_bytes", file.remaining_bytes},
                 {"streamed_bytes", file.streamed_bytes}}},
               {"check", report::check_json(check_subject(file.input, *file.given, file.plan))}};
  for (const CompiledOp& op : file.ops) {
    Json& part = json["edge_tpu_subgraphs"].emplace_back(Json{{"has_code", op.has_code}});
    if (!op.has_code) part["no_machine_code"] = op.why_no_code;
  }
  if (file.verified.done) {
    json["compared"] = {{"outputs", file.verified.comparison.outputs},
                        {"values", file.verified.comparison.values},
                        {"runs", file.verified.rounds}};
  } else {
    json["not_verified"] = file.verified.why_not;
  }
  if (options.search) json["attempts"] = attempts_json(file.attempts);
  return json;
}

Json compile_json(const CompileOptions& options, const CompileResult& result) {
  Json json = {{"reef", reef_version()},
               {"compatible_with", kCompatibleVersion},
               {"compiled", result.ok()},
               {"has_all_code", result.ok() && result.has_all_code()},
               {"nothing_on_chip", result.ok() && result.has_file_without_chip()},
               {"min_runtime_version", options.plan.runtime},
               {"files", Json::array()},
               {"refusals", Json::array()}};
  if (result.ok()) {
    for (const CompileRun& run : result.runs) {
      for (const CompiledFile& file : run.files) json["files"].push_back(file_json(options, file));
    }
  }
  for (const Refusal& refusal : result.refusals) {
    json["refusals"].push_back(
        {{"model", refusal.model}, {"kind", name_of(refusal.kind)}, {"explanation", refusal.explanation}});
    if (!refusal.attempts.empty()) json["refusals"].back()["attempts"] = attempts_json(refusal.attempts);
  }
  return json;
}

}  // namespace

Json pipeline_json(const PipelineResult& result) {
  Json json = compile_json(result.compile, result.compiled);
  json["quantized"] = Json::array();
  for (const QuantizedModel& model : result.quantized) {
    QuantizeRequest request;
    request.model = model.model;
    request.output = result.compile.write && result.compiled.ok() ? model.output : "";
    json["quantized"].push_back(quantize_json(request, model.outcome));
  }
  return json;
}

}  // namespace reef::compiler
