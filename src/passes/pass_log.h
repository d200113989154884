// SPDX-License-Identifier: Apache-2.0
// A record of what passes did to a model, for people who look for the pass that changed something: --explain, --dump
// and --stop-after of reef convert, quantize and compile.
//
// Which pass changed how much is always recorded. Sentences on single changes and graphs as passes left them cost time
// and memory, so they are recorded only where the request asks for them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ir/model.h"
#include "passes/pass_info.h"
#include "passes/rewrite.h"
#include "passes/simplify.h"

namespace reef::passes {

// Names of graphs that no pass makes: the model before the first and behind the last float pass.
inline constexpr std::string_view kImported = "import", kSimplified = "simplify";

struct LogRequest {
  bool changes = false;             // a sentence for every change
  std::vector<std::string> graphs;  // to keep: "gelu", "chip/gelu" (the pass of that stage), kImported, kSimplified
};

// One run of a pass over a subgraph.
struct PassRun {
  Stage stage = Stage::kFloat;  // that ran it: kFloat or kChip, also for passes of kShape
  std::string_view pass;
  std::size_t subgraph = 0;
  int round = 1;
  int changes = 0;
  std::vector<std::string> sentences;  // "op 7 RELU 'act': removed RELU, changed CONV_2D"; empty unless asked for
};

// A graph that the request named.
struct KeptGraph {
  std::string name;  // as in the request
  ir::Model model;   // whole, and passes ir::verify
  int changes = 0;   // that the pass made in the run behind which the graph was kept
};

class PassLog {
 public:
  PassLog() = default;
  explicit PassLog(LogRequest request) : request_(std::move(request)) {}

  const LogRequest& request() const { return request_; }
  // Runs that changed something, in order.
  const std::vector<PassRun>& runs() const { return runs_; }
  // The graph behind the pass's first run that changed something; if there was none, behind its first run. Null: the
  // pass has not run, or nobody asked for its graph.
  const KeptGraph* find(std::string_view name) const;

  // ---- For the drivers ----
  // `graph` is as the run left it.
  void add(PassRun run, const Graph& graph);
  // Sentences for the runs from `first_run` on, in order: one for each change.
  void tell(std::size_t first_run, const std::vector<std::string>& sentences);
  void keep(std::string_view name, const ir::Model& model);
  // The record of a later stage of the same model.
  void append(const PassLog& later);

 private:
  void keep(KeptGraph kept);

  LogRequest request_;
  std::vector<PassRun> runs_;
  std::vector<KeptGraph> kept_;
};

// Both stages (simplify.h, rewrite.h), recorded. The functions of those headers do the same without a record.
Result<SimplifyReport> simplify(ir::Model& model, const SimplifyOptions& options, PassLog& log);
Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options, PassLog& log);

// The names that a request may use: every pass, and "STAGE/PASS" for those that run in several of `stages`.
std::vector<std::string> graph_names(std::span<const Stage> stages);

// Says what changed in a graph between two looks at it, by comparing operators and tensors.
class GraphWatch {
 public:
  explicit GraphWatch(const Graph& graph) { remember(graph); }
  // "removed 2 TRANSPOSE, added RESHAPE, changed CONV_2D"; what is told here is not told again.
  std::string changes_in(const Graph& graph);
  // The operator as it was at the last look: "op 12 ADD 'sum'".
  std::string describe(const Graph& graph, OpId op) const;

 private:
  void remember(const Graph& graph);

  std::vector<std::optional<ir::Operator>> operators_;  // by slot; empty: removed
  std::vector<ir::Tensor> tensors_;
};

}  // namespace reef::passes
