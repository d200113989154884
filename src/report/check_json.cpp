// SPDX-License-Identifier: Apache-2.0
// check's report as JSON. Field names are a contract: docs/json.md.
#include <nlohmann/json.hpp>

#include "report/check_report.h"
#include "report/verdict.h"

namespace reef::report {
namespace {

using Json = nlohmann::ordered_json;
using partition::Place;

double ms(double us) { return us / 1000; }

std::string_view place_name(Place place) {
  switch (place) {
    case Place::kChip:
      return "edgetpu";
    case Place::kRule:
      return "rule";
    case Place::kCascade:
      return "cascade";
    case Place::kNotChosen:
      return "not-chosen";
    case Place::kAfterCut:
      return "after-cut";
    case Place::kNotWorthIt:
      return "not-worth-it";
  }
  return "";
}

Json tensor_list(const ir::Subgraph& graph, const std::vector<std::int32_t>& tensors) {
  Json list = Json::array();
  for (const std::int32_t index : tensors) {
    if (index < 0) continue;
    const ir::Tensor& tensor = graph.tensors[at(index)];
    list.push_back({{"tensor", index},
                    {"name", tensor.name},
                    {"type", ir::type_name(tensor.type)},
                    {"shape", tensor.shape.dims()}});
  }
  return list;
}

Json finding_json(const partition::Finding& finding) {
  const ops::ChipRule& rule = *finding.rule;
  return {{"rule", rule.id},
          {"says", rule.says},
          {"particulars", finding.particulars},
          {"suggestion", finding.suggestion},
          {"source", ops::to_string(rule.source)},
          {"evidence", rule.evidence},
          {"runtimes", {rule.runtimes.from, rule.runtimes.to}},
          {"rewrite", finding.rewrite}};
}

Json op_json(const CheckSubject& subject, std::int32_t op) {
  const auto i = static_cast<std::size_t>(op);
  const ir::Subgraph& graph = subject.model->subgraphs[0];
  const ir::Operator& source = graph.operators[i];
  const partition::Placement& placement = subject.partition->ops[i];
  const bool on_chip = placement.place == Place::kChip;
  const partition::OpCost& cost = subject.costs->op(op);
  Json json = {{"index", op},
               {"source_index", (*subject.source_op)[i]},
               {"type", source.type},
               {"version", source.version},
               {"inputs", tensor_list(graph, source.inputs)},
               {"outputs", tensor_list(graph, source.outputs)},
               {"on", on_chip ? "edgetpu" : "cpu"},
               {"part", placement.part},
               {"reason", on_chip ? "" : place_name(placement.place)},
               {"blocked_by", placement.blocker},
               {"google_status", ops::to_string(google_status(*subject.assessment, *subject.partition, op))},
               {"predicted_ms", ms(on_chip ? cost.chip : cost.cpu)},
               {"predicted_edgetpu_ms", ms(cost.chip)},
               {"predicted_cpu_ms", ms(cost.cpu)},
               {"findings", Json::array()}};
  for (const auto& finding : subject.assessment->ops[i].findings) json["findings"].push_back(finding_json(finding));
  if (placement.place == Place::kRule) {
    json["predicted_gain_ms"] = ms(placement.gain_us);
    json["keeps_on_cpu"] = placement.strands;
  }
  return json;
}

Json part_json(const partition::Part& part) {
  return {{"ops", part.ops},
          {"inputs", part.inputs},
          {"outputs", part.outputs},
          {"predicted_ms",
           {{"total", ms(part.cost.total())},
            {"compute", ms(part.cost.compute)},
            {"streaming", ms(part.cost.streaming)},
            {"transfer", ms(part.cost.transfer)}}},
          {"cached_parameter_bytes", part.cost.cached_bytes},
          {"streamed_parameter_bytes", part.cost.streamed_bytes},
          {"parameter_cache_bytes", part.cost.cache_capacity},
          {"input_bytes", part.cost.input_bytes},
          {"output_bytes", part.cost.output_bytes},
          {"instruction_bytes", part.cost.instruction_bytes}};
}

Json rewrite_json(const passes::Application& application) {
  return {{"rewrite", application.rewrite}, {"made", application.made},
          {"what", application.what},       {"place", application.place},
          {"how", application.how},         {"largest_difference", application.largest_difference}};
}

}  // namespace

nlohmann::ordered_json check_json(const CheckSubject& subject) {
  const ir::Subgraph& graph = subject.model->subgraphs[0];
  const partition::Partition& partition = *subject.partition;
  Json json = {{"model", subject.file},
               {"runtime", subject.assessment->options.runtime},
               {"link", subject.costs->options().link->name},
               {"clock_hz", subject.costs->options().clock_hz},
               {"quantized", subject.assessment->is_quantized && subject.float_model == nullptr},
               {"judged_as_quantized", subject.float_model != nullptr},
               {"verdict", judge(subject).verdict},
               {"operators", graph.operators.size()},
               {"operators_on_edgetpu", partition.chip_op_count()},
               {"predicted_ms", ms(partition.predicted_us)},
               {"predicted_cpu_only_ms", ms(partition.all_cpu_us)},
               {"figures", "estimated"},
               {"mapped", Json::array()},
               {"parts", Json::array()},
               {"ops", Json::array()},
               {"rewrites", Json::array()},
               {"float_tensors", tensor_list(graph, subject.assessment->float_tensors)},
               {"dynamic_tensors", tensor_list(graph, subject.assessment->dynamic_tensors)},
               {"notes", partition.notes}};
  for (std::size_t op = 0; op < partition.ops.size(); ++op) {
    if (partition.ops[op].place == Place::kChip) json["mapped"].push_back(op);
    json["ops"].push_back(op_json(subject, static_cast<std::int32_t>(op)));
  }
  for (const partition::Part& part : partition.parts) json["parts"].push_back(part_json(part));
  for (const auto& application : *subject.rewrites) json["rewrites"].push_back(rewrite_json(application));
  json["links"] = Json::array();
  for (const LinkTime& time : times_over_links(subject)) {
    json["links"].push_back({{"link", time.link->name},
                             {"host", time.link->meaning},
                             {"predicted_ms", ms(time.predicted_us)},
                             {"predicted_cpu_only_ms", ms(time.all_cpu_us)},
                             {"is_guess", time.link->is_guess}});
  }
  if (!subject.hint.empty()) json["hint"] = subject.hint;
  if (!subject.next.empty()) json["next"] = subject.next;
  if (subject.without_rewrites != nullptr) {
    json["without_rewrites"] = {{"operators", subject.given->subgraphs[0].operators.size()},
                                {"operators_on_edgetpu", subject.without_rewrites->chip_op_count()},
                                {"predicted_ms", ms(subject.without_rewrites->predicted_us)}};
  }
  return json;
}

}  // namespace reef::report
