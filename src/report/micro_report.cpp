// SPDX-License-Identifier: Apache-2.0
#include "report/micro_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "ir/describe.h"
#include "report/check_report.h"

namespace reef::report {
namespace {

constexpr std::size_t kMostShown = 40;

std::string place_of(const ir::Model& model, const micro::Refusal& refusal) {
  if (refusal.op < 0) return "";
  const ir::Subgraph& graph = model.subgraphs[at(refusal.subgraph)];
  const std::string op = ir::describe_op(graph, refusal.op);
  return refusal.subgraph == 0 ? op : fmt::format("subgraph {} {}", refusal.subgraph, op);
}

std::string arena_line(std::string_view build, const std::optional<micro::ArenaSize>& size) {
  if (!size) return "";
  return fmt::format("  {:<28} {:>9} bytes = {} for tensors and scratch + {} for structures (planning takes {})\n",
                     build, size->bytes, size->tensors, size->structures, size->planning);
}

nlohmann::ordered_json arena_json(const std::optional<micro::ArenaSize>& size) {
  if (!size) return nullptr;
  return {{"bytes", size->bytes},
          {"tensors", size->tensors},
          {"structures", size->structures},
          {"planning", size->planning}};
}

std::string memory_lines(const micro::Assessment& assessment) {
  std::string text;
  for (const micro::MemoryUse& use : assessment.memory) {
    text += fmt::format("  {:<32} {:>10} of {:>10} in the {}{}\n", use.what, ir::describe_bytes(use.bytes),
                        ir::describe_bytes(use.limit), use.where, use.is_exact ? "" : " (estimated)");
  }
  return text;
}

}  // namespace

std::string micro_refusal(const ir::Model& model, const micro::Assessment& assessment) {
  const micro::Refusal& first = assessment.refusals.front();
  const std::string place = place_of(model, first);
  std::string text = fmt::format("it does not run on {}. {}{}{} {}", target_name(assessment.target), place,
                                 place.empty() ? "" : ": ", first.reason, first.remedy);
  if (assessment.refusals.size() > 1) {
    text += fmt::format(" {} further reasons: `reef check --target {}`.", assessment.refusals.size() - 1,
                        assessment.target == micro::Target::kMicro ? "micro" : "tflm");
  }
  return printable_text(text);
}

std::string micro_text(std::string_view file, const ir::Model& model, const micro::Assessment& assessment) {
  std::string text = fmt::format("{}: {} on {}\n", file, assessment.is_accepted() ? "runs" : "does NOT run",
                                 target_name(assessment.target));
  for (std::size_t i = 0; i < std::min(assessment.refusals.size(), kMostShown); ++i) {
    const micro::Refusal& refusal = assessment.refusals[i];
    const std::string place = place_of(model, refusal);
    text += fmt::format("  {}{}{} [{}]\n", place, place.empty() ? "" : ": ", refusal.reason, refusal.rule);
    if (!refusal.remedy.empty()) text += fmt::format("      do  {}\n", refusal.remedy);
  }
  if (assessment.refusals.size() > kMostShown) {
    text += fmt::format("  and {} more (--json lists all)\n", assessment.refusals.size() - kMostShown);
  }
  text += "Resolver lines:\n";
  for (const micro::ResolverLine& line : assessment.resolver) text += fmt::format("  resolver.{};\n", line.code);
  if (assessment.arena_32 || assessment.arena_64)
    text += "Tensor arena (predicted; reference kernels unless said otherwise):\n";
  text += arena_line("Coral's SDK (CMSIS-NN)", assessment.arena_coral);
  text += arena_line("TFLite Micro, 32-bit board", assessment.arena_32);
  text += arena_line("TFLite Micro, 64-bit PC", assessment.arena_64);
  if (!assessment.memory.empty()) text += "The board's memory:\n" + memory_lines(assessment);
  text += fmt::format("Operators on a Cortex-M7 at 800 MHz with {}: about {} per inference (estimated).\n",
                      assessment.target == micro::Target::kMicro ? "CMSIS-NN" : "reference kernels",
                      time_text(assessment.cpu_us));
  for (const std::string& note : assessment.notes) text += fmt::format("Note: {}\n", note);
  return printable_text(text);
}

nlohmann::ordered_json micro_json(std::string_view file, const ir::Model& model, const micro::Assessment& assessment) {
  using Json = nlohmann::ordered_json;
  Json json = {{"file", file},
               {"target", assessment.target == micro::Target::kMicro ? "micro" : "tflm"},
               {"accepted", assessment.is_accepted()},
               {"table", micro::table_release()},
               {"refusals", Json::array()},
               {"resolver", Json::array()}};
  for (const micro::Refusal& refusal : assessment.refusals) {
    json["refusals"].push_back({{"rule", refusal.rule},
                                {"subgraph", refusal.subgraph},
                                {"op", refusal.op},
                                {"place", place_of(model, refusal)},
                                {"reason", refusal.reason},
                                {"remedy", refusal.remedy}});
  }
  for (const micro::ResolverLine& line : assessment.resolver)
    json["resolver"].push_back({{"op", line.op}, {"code", line.code}});
  json["arena"] = {{"bytes", assessment.arena_bytes() ? Json(*assessment.arena_bytes()) : Json()},
                   {"tflm_32", arena_json(assessment.arena_32)},
                   {"tflm_64", arena_json(assessment.arena_64)},
                   {"coral", arena_json(assessment.arena_coral)}};
  json["memory"] = Json::array();
  for (const micro::MemoryUse& use : assessment.memory) {
    json["memory"].push_back({{"what", use.what},
                              {"where", use.where},
                              {"bytes", use.bytes},
                              {"limit", use.limit},
                              {"exact", use.is_exact}});
  }
  json["rounding"] = Json::array();
  for (const micro::RoundedOp& op : assessment.rounding) {
    json["rounding"].push_back({{"subgraph", op.subgraph}, {"op", op.op}, {"as", op.as}});
  }
  json["cortex_m7_us_estimated"] = assessment.cpu_us;
  json["notes"] = assessment.notes;
  return json;
}

}  // namespace reef::report
