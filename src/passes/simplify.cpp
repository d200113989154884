// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify.h"

#include "execute/cpu/evaluate.h"
#include "ir/compact.h"
#include "ir/verify.h"
#include "passes/driver.h"

namespace reef::passes {
namespace {

// Models settle after a few rounds. A file made to keep us busy is left half done.
constexpr int kMostSimplifyRounds = 32;

Status simplify_subgraph(ir::Model& model, std::size_t subgraph, const SimplifyOptions& options,
                         const graph::Evaluate& evaluate, PassLog& log, bool& is_changed) {
  Graph graph(model, subgraph, evaluate);
  if (!graph.is_ordered()) return ok_status();
  graph.sweep();
  const auto run_all = [&](int round, bool last) {
    int made = 0;
    for (const Pass* pass : list_of(Stage::kFloat)) {
      if (pass->is_last == last && !contains(options.disable, pass->name)) made += run_pass(*pass, graph, log, round);
    }
    is_changed = is_changed || made > 0;
    return made;
  };
  for (int round = 1; round <= kMostSimplifyRounds; ++round) {
    if (run_all(round, false) == 0 && run_all(round, true) == 0) break;
  }
  return graph.finish();
}

std::int64_t count_operators(const ir::Model& model) {
  std::int64_t count = 0;
  for (const ir::Subgraph& graph : model.subgraphs) count += static_cast<std::int64_t>(graph.operators.size());
  return count;
}

}  // namespace

Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options) {
  PassLog unread;
  return simplify(model, options, unread);
}

Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options, PassLog& log) {
  REEF_RETURN_IF_ERROR(check_names(Stage::kFloat, options.disable, "pass"));
  log.keep(kImported, model);
  SimplifyReport report;
  report.operators_before = count_operators(model);
  Status status = ok_status();
  cpu::Evaluator evaluator;  // one for the whole model, so that its bound is, too
  for (std::size_t i = 0; i < model.subgraphs.size() && status.ok(); ++i) {
    status = simplify_subgraph(model, i, options, std::ref(evaluator), log, report.is_changed);
    if (status.ok()) ir::drop_unused_tensors(model, i);
  }
  if (status.ok()) ir::drop_unused_buffers(model);
  if (status.ok()) status = ir::verify(model);
  if (!status.ok()) {
    model = ir::Model();
    return internal_error("simplification left a model that is not well formed: {}", status.message());
  }
  log.keep(kSimplified, model);
  report.operators_after = count_operators(model);
  return report;
}

}  // namespace reef::passes
