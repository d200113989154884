// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_log.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ir/compact.h"
#include "ir/describe.h"

namespace reef::passes {
namespace {

std::string_view name_of(Stage stage) { return stage == Stage::kChip ? "chip" : "float"; }

// The model as it would be if the graph were finished now, but for the names of new tensors. New operators begin in the
// neighbourhood of those that they were made for; settling sorts out the rest.
Result<ir::Model> snapshot(const Graph& graph) {
  std::vector<OpId> alive;
  for (OpId op = 0; op < graph.op_slots(); ++op) {
    if (graph.is_alive(op)) alive.push_back(op);
  }
  std::stable_sort(alive.begin(), alive.end(), [&](OpId a, OpId b) { return graph.origin(a) < graph.origin(b); });
  ir::Model model = graph.model();  // shares the data
  std::vector<ir::Operator>& operators = model.subgraphs[graph.subgraph()].operators;
  operators.clear();
  for (const OpId op : alive) operators.push_back(graph.op(op));
  Graph sorted(model, graph.subgraph());
  REEF_RETURN_IF_ERROR(sorted.settle().status());
  ir::drop_unused_tensors(model, graph.subgraph());
  ir::drop_unused_buffers(model);
  return model;
}

bool names_run(std::string_view name, const PassRun& run) {
  return name == run.pass || name == fmt::format("{}/{}", name_of(run.stage), run.pass);
}

// "removed 2 TRANSPOSE and RESHAPE".
void add_counts(std::string_view verb, const std::map<std::string, int>& counts, std::string& text) {
  if (counts.empty()) return;
  if (!text.empty()) text += ", ";
  text += verb;
  std::size_t named = 0;
  for (const auto& [type, count] : counts) {
    const char* const between = named == 0 ? " " : named + 1 == counts.size() ? " and " : ", ";
    text += count == 1 ? fmt::format("{}{}", between, type) : fmt::format("{}{} {}", between, count, type);
    ++named;
  }
}

}  // namespace

const KeptGraph* PassLog::find(std::string_view name) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const KeptGraph& kept) { return kept.name == name; });
  return found == kept_.end() ? nullptr : &*found;
}

void PassLog::keep(KeptGraph kept) {
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const KeptGraph& each) { return each.name == kept.name; });
  if (known == kept_.end()) {
    kept_.push_back(std::move(kept));
  } else if (known->changes == 0 && kept.changes > 0) {
    *known = std::move(kept);
  }
}

void PassLog::keep(std::string_view name, const ir::Model& model) {
  if (!contains(request_.graphs, name)) return;
  if (name == kSimplified) std::erase_if(kept_, [&](const KeptGraph& kept) { return kept.name == name; });
  keep(KeptGraph{std::string(name), model, 0});
}

void PassLog::add(PassRun run, const Graph& graph) {
  for (const std::string& name : request_.graphs) {
    const KeptGraph* known = find(name);
    if (!names_run(name, run) || (known != nullptr && (known->changes > 0 || run.changes == 0))) continue;
    auto model = snapshot(graph);
    if (model.ok()) keep(KeptGraph{name, std::move(model).value(), run.changes});
  }
  if (run.changes > 0) runs_.push_back(std::move(run));
}

void PassLog::tell(std::size_t first_run, const std::vector<std::string>& sentences) {
  auto next = sentences.begin();
  for (std::size_t i = first_run; i < runs_.size(); ++i) {
    for (int change = 0; change < runs_[i].changes && next != sentences.end(); ++change) {
      runs_[i].sentences.push_back(*next++);
    }
  }
}

void PassLog::append(const PassLog& later) {
  runs_.insert(runs_.end(), later.runs_.begin(), later.runs_.end());
  for (const KeptGraph& kept : later.kept_) keep(kept);
}

std::vector<std::string> graph_names(std::span<const Stage> stages) {
  std::vector<std::string> names;
  std::vector<std::string> of_two_stages;
  for (const Stage stage : stages) {
    for (const PassInfo& pass : passes_of(stage)) {
      if (!contains(names, pass.name)) {
        names.emplace_back(pass.name);
        continue;
      }
      for (const Stage each : stages) of_two_stages.push_back(fmt::format("{}/{}", name_of(each), pass.name));
    }
  }
  names.insert(names.end(), of_two_stages.begin(), of_two_stages.end());
  return names;
}

void GraphWatch::remember(const Graph& graph) {
  operators_.clear();
  for (OpId op = 0; op < graph.op_slots(); ++op) {
    operators_.push_back(graph.is_alive(op) ? std::optional(graph.op(op)) : std::nullopt);
  }
  tensors_ = graph.graph().tensors;
}

std::string GraphWatch::describe(const Graph& graph, OpId op) const {
  const std::optional<ir::Operator>& before = operators_[at(op)];
  if (!before) return graph.describe(op);
  const TensorId result = before->outputs.empty() ? kNone : before->outputs[0];
  return fmt::format("op {} {} '{}'", graph.origin(op), before->type,
                     result < 0 ? "" : ir::describe_name(tensors_[at(result)].name));
}

std::string GraphWatch::changes_in(const Graph& graph) {
  std::map<std::string, int> removed, added, changed;
  for (OpId op = 0; op < graph.op_slots(); ++op) {
    const auto slot = static_cast<std::size_t>(op);
    const ir::Operator* before = slot < operators_.size() && operators_[slot] ? &*operators_[slot] : nullptr;
    const bool is_alive = graph.is_alive(op);
    if (before == nullptr) {
      if (is_alive) ++added[graph.type(op)];
    } else if (!is_alive) {
      ++removed[before->type];
    } else if (before->type != graph.type(op)) {
      ++removed[before->type];
      ++added[graph.type(op)];
    } else if (!(*before == graph.op(op))) {
      ++changed[before->type];
    }
  }
  std::string text;
  add_counts("removed", removed, text);
  add_counts("added", added, text);
  add_counts("changed", changed, text);
  int tensors = 0;  // only where no operator tells: shapes that are fixed, constants that are shared
  for (std::size_t i = 0; text.empty() && i < tensors_.size(); ++i)
    tensors += tensors_[i] == graph.graph().tensors[i] ? 0 : 1;
  if (text.empty()) text = fmt::format("changed {} tensor{}", tensors, tensors == 1 ? "" : "s");
  remember(graph);
  return text;
}

}  // namespace reef::passes
