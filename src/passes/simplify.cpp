// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify.h"

#include <algorithm>

#include "execute/cpu/evaluate.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "passes/driver.h"

namespace reef::passes {
namespace {

// Models settle after a few rounds. A file made to keep us busy is left half done.
constexpr int kMostRounds = 32;

Status simplify_subgraph(ir::Model& model, std::size_t subgraph, const SimplifyOptions& options,
                         const graph::Evaluate& evaluate, std::vector<int>& changes) {
  Graph graph(model, subgraph, evaluate);
  if (!graph.is_ordered()) return ok_status();
  graph.sweep();
  const auto run_all = [&](bool last) {
    const std::span<const Pass* const> passes = list_of(Stage::kFloat);
    int made = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (passes[i]->is_last != last || contains(options.disable, passes[i]->name)) continue;
      const int own = run_pass(*passes[i], graph);
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
  REEF_RETURN_IF_ERROR(check_names(Stage::kFloat, options.disable, "pass"));
  SimplifyReport report;
  report.operators_before = count_operators(model, "");
  report.transposes_before = count_operators(model, "TRANSPOSE");
  const std::span<const PassInfo> passes = passes_of(Stage::kFloat);
  std::vector<int> changes(passes.size(), 0);
  Status status = ok_status();
  cpu::Evaluator evaluator;  // one for the whole model, so that its bound is, too
  for (std::size_t i = 0; i < model.subgraphs.size() && status.ok(); ++i) {
    status = simplify_subgraph(model, i, options, std::ref(evaluator), changes);
    if (status.ok()) ir::drop_unused_tensors(model, i);
  }
  if (status.ok()) ir::drop_unused_buffers(model);
  if (status.ok()) status = ir::verify(model);
  if (!status.ok()) {
    model = ir::Model();
    return internal_error("simplification left a model that is not well formed: {}", status.message());
  }
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (changes[i] > 0) report.passes.push_back({passes[i].name, changes[i]});
  }
  report.operators_after = count_operators(model, "");
  report.transposes_after = count_operators(model, "TRANSPOSE");
  return report;
}

}  // namespace reef::passes
