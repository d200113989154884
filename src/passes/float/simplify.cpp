// SPDX-License-Identifier: Apache-2.0
#include "passes/float/simplify.h"

#include <algorithm>
#include <array>

#include "execute/cpu/evaluate.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "passes/float/pass.h"

namespace reef::simplify {

#define REEF_SIMPLIFY_PASS(name) extern const Pass name##_pass;
#include "passes/float/passes.def"
#undef REEF_SIMPLIFY_PASS

namespace {

constexpr std::array kPasses = {
#define REEF_SIMPLIFY_PASS(name) &name##_pass,
#include "passes/float/passes.def"
#undef REEF_SIMPLIFY_PASS
};

// Models settle after a few rounds. A file made to keep us busy is left half done.
constexpr int kMostRounds = 32;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool known =
        std::any_of(kPasses.begin(), kPasses.end(), [&](const Pass* pass) { return pass->name == name; });
    if (known) continue;
    std::string all;
    for (const Pass* pass : kPasses) all += fmt::format("{}{}", all.empty() ? "" : ", ", pass->name);
    return invalid_input("there is no pass '{}'; there are {}", name, all);
  }
  return ok_status();
}

int run(const Pass& pass, Graph& graph) {
  if (pass.whole != nullptr) {
    const int changes = pass.whole(graph);
    graph.sweep();
    return changes;
  }
  int changes = 0;
  for (OpId op = 0; op < graph.op_slots(); ++op) {
    if (!graph.is_sound(op) || !pass.at(graph, op)) continue;
    graph.sweep();
    ++changes;
  }
  return changes;
}

Status simplify_subgraph(ir::Model& model, std::size_t subgraph, const SimplifyOptions& options,
                         cpu::Evaluator& evaluator, std::array<int, kPasses.size()>& changes) {
  Graph graph(model, subgraph, evaluator);
  if (!graph.is_ordered()) return ok_status();
  graph.sweep();
  const auto run_all = [&](bool last) {
    int made = 0;
    for (std::size_t i = 0; i < kPasses.size(); ++i) {
      if (kPasses[i]->is_last != last || contains(options.disable, kPasses[i]->name)) continue;
      const int own = run(*kPasses[i], graph);
      changes[i] += own;
      made += own;
    }
    return made;
  };
  for (int round = 0; round < kMostRounds; ++round) {
    if (run_all(false) == 0 && run_all(true) == 0) break;
  }
  return graph.finish();
}

std::int64_t count_operators(const ir::Model& model, std::string_view type) {
  std::int64_t count = 0;
  for (const ir::Subgraph& graph : model.subgraphs) {
    count += std::count_if(graph.operators.begin(), graph.operators.end(),
                           [&](const ir::Operator& op) { return type.empty() || op.type == type; });
  }
  return count;
}

}  // namespace

std::vector<PassInfo> passes() {
  std::vector<PassInfo> result;
  for (const Pass* pass : kPasses) result.push_back({pass->name, pass->summary});
  return result;
}

std::vector<std::string> SimplifyReport::sentences() const {
  std::vector<std::string> result;
  for (const PassReport& pass : passes) {
    result.push_back(fmt::format("{}: {} change{}", pass.name, pass.changes, pass.changes == 1 ? "" : "s"));
  }
  result.push_back(fmt::format("{} operators became {}, {} of them TRANSPOSE (before: {})", operators_before,
                               operators_after, transposes_after, transposes_before));
  return result;
}

Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options) {
  REEF_RETURN_IF_ERROR(check_names(options.disable));
  SimplifyReport report;
  report.operators_before = count_operators(model, "");
  report.transposes_before = count_operators(model, "TRANSPOSE");
  std::array<int, kPasses.size()> changes = {};
  Status status = ok_status();
  cpu::Evaluator evaluator;
  for (std::size_t i = 0; i < model.subgraphs.size() && status.ok(); ++i) {
    status = simplify_subgraph(model, i, options, evaluator, changes);
    if (status.ok()) ir::drop_unused_tensors(model, i);
  }
  if (status.ok()) ir::drop_unused_buffers(model);
  if (status.ok()) status = ir::verify(model);
  if (!status.ok()) {
    model = ir::Model();
    return internal_error("simplification left a model that is not well formed: {}", status.message());
  }
  for (std::size_t i = 0; i < kPasses.size(); ++i) {
    if (changes[i] > 0) report.passes.push_back({kPasses[i]->name, changes[i]});
  }
  report.operators_after = count_operators(model, "");
  report.transposes_after = count_operators(model, "TRANSPOSE");
  return report;
}

}  // namespace reef::simplify
