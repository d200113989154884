// SPDX-License-Identifier: Apache-2.0
#include "passes/driver.h"

#include <algorithm>
#include <array>
#include <optional>

namespace reef::passes {

namespace {

struct Listed {
  Stage stage;
  const Pass* pass;
};

constexpr Stage stage_shape = Stage::kShape, stage_float = Stage::kFloat, stage_chip = Stage::kChip;

constexpr std::array kListed = {
#define REEF_PASS(stage, name) Listed{stage_##stage, &name##_##stage##_pass},
#include "passes/passes.def"
#undef REEF_PASS
};

constexpr bool runs_in(Stage own, Stage stage) { return own == stage || own == Stage::kShape; }

template <Stage kStage>
constexpr auto select() {
  constexpr auto kCount =
      std::count_if(kListed.begin(), kListed.end(), [](const Listed& each) { return runs_in(each.stage, kStage); });
  std::array<const Pass*, kCount> result{};
  std::size_t count = 0;
  for (const Listed& each : kListed) {
    if (runs_in(each.stage, kStage)) result[count++] = each.pass;
  }
  return result;
}

constexpr auto kShapePasses = select<Stage::kShape>();
constexpr auto kFloatPasses = select<Stage::kFloat>();
constexpr auto kChipPasses = select<Stage::kChip>();

std::vector<PassInfo> described(Stage stage) {
  std::vector<PassInfo> result;
  for (const Pass* pass : list_of(stage)) {
    const bool is_shared = std::find(kShapePasses.begin(), kShapePasses.end(), pass) != kShapePasses.end();
    result.push_back({is_shared ? Stage::kShape : stage, pass->name, pass->summary, pass->safety, pass->on_by_default});
  }
  return result;
}

}  // namespace

std::span<const Pass* const> list_of(Stage stage) {
  if (stage == Stage::kShape) return kShapePasses;
  if (stage == Stage::kFloat) return kFloatPasses;
  return kChipPasses;
}

std::span<const PassInfo> passes_of(Stage stage) {
  static const std::array all = {described(Stage::kShape), described(Stage::kFloat), described(Stage::kChip)};
  return all[at(stage)];
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_names(Stage stage, const std::vector<std::string>& names, std::string_view kind) {
  const std::span<const PassInfo> known = passes_of(stage);
  for (const std::string& name : names) {
    if (std::any_of(known.begin(), known.end(), [&](const PassInfo& pass) { return pass.name == name; })) continue;
    std::string all;
    for (const PassInfo& pass : known) all += fmt::format("{}{}", all.empty() ? "" : ", ", pass.name);
    return invalid_input("there is no {} '{}'; there are {}", kind, name, all);
  }
  return ok_status();
}

int run_pass(const Pass& pass, Graph& graph, PassLog& log, int round) {
  PassRun run{Stage::kFloat, pass.name, graph.subgraph(), round, 0, {}};
  std::optional<GraphWatch> watch;
  if (log.request().changes) watch.emplace(graph);
  if (pass.whole != nullptr) {
    run.changes = pass.whole(graph);
    graph.sweep();
    if (watch && run.changes > 0) run.sentences.push_back(watch->changes_in(graph));
  }
  for (OpId op = 0; pass.whole == nullptr && op < graph.op_slots(); ++op) {
    if (!graph.is_sound(op) || !pass.at(graph, op)) continue;
    graph.sweep();
    ++run.changes;
    if (!watch) continue;
    const std::string where = watch->describe(graph, op);
    run.sentences.push_back(fmt::format("{}: {}", where, watch->changes_in(graph)));
  }
  const int changes = run.changes;
  log.add(std::move(run), graph);
  return changes;
}

int run_pass(const Pass& pass, ChipGraph& graph, PassLog& log, int round, int most) {
  const int before = graph.changes();
  int changes = 0;
  if (pass.whole_on_chip != nullptr) {
    changes = pass.whole_on_chip(graph) ? 1 : 0;
    if (changes > 0) graph.remove_dead();
  }
  for (OpId op = 0; pass.whole_on_chip == nullptr && op < graph.op_count() && graph.changes() < most; ++op) {
    if (!pass.at_on_chip(graph, op)) continue;
    graph.remove_dead();
    ++changes;
  }
  log.add({Stage::kChip, pass.name, graph.subgraph(), round, graph.changes() - before, {}}, graph);
  return changes;
}

}  // namespace reef::passes
