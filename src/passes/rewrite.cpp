// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include "ir/compact.h"
#include "ir/verify.h"
#include "passes/driver.h"

namespace reef::passes {
namespace {

// Every change costs a walk over the graph. Models have hundreds of operators; a file made to keep us busy may have a
// million, and is left half done.
constexpr int kMostChanges = 4096;
constexpr int kMostRounds = 64;

bool is_on(const Pass& pass, const RewriteOptions& options) {
  if (contains(options.disable, pass.name)) return false;
  return contains(options.enable, pass.name) || (pass.on_by_default && !options.none);
}

// Tries a rewrite that is off on a copy, and returns what operators could become by it.
std::vector<Application> possible(const ir::Model& model, const std::vector<std::int32_t>& origins, const Pass& rewrite,
                                  const RewriteOptions& options) {
  ir::Model copy = model;
  ChipGraph edit(copy, options);
  edit.replace_operators(copy.subgraphs[0].operators, origins);
  edit.begin(rewrite, /*is_trial=*/true);
  PassLog unread;
  run_pass(rewrite, edit, unread, 1, kMostChanges);
  return edit.take_applications();
}

}  // namespace

Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options) {
  PassLog unread;
  return apply_rewrites(model, options, unread);
}

Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options, PassLog& log) {
  REEF_RETURN_IF_ERROR(check_names(Stage::kChip, options.enable, "rewrite"));
  REEF_RETURN_IF_ERROR(check_names(Stage::kChip, options.disable, "rewrite"));
  if (model.subgraphs.empty()) return std::vector<Application>();
  const ir::Model given = model;  // shares the data
  ChipGraph edit(model, options);
  if (!edit.is_ordered()) return std::vector<Application>();
  const std::size_t tensor_count = model.subgraphs[0].tensors.size();
  const std::size_t first_run = log.runs().size();
  bool changed = true;
  for (int round = 1; round <= kMostRounds && changed && edit.changes() < kMostChanges; ++round) {
    changed = false;
    for (const Pass* rewrite : list_of(Stage::kChip)) {
      if (!is_on(*rewrite, options)) continue;
      edit.begin(*rewrite, /*is_trial=*/false);
      for (int i = 0; i < kMostRounds && run_pass(*rewrite, edit, log, round, kMostChanges) > 0; ++i) changed = true;
    }
  }
  const std::vector<std::int32_t> origins = edit.origins();
  if (edit.changes() > 0 || model.subgraphs[0].tensors.size() != tensor_count) {
    ir::drop_unused_tensors(model, 0);
    ir::drop_unused_buffers(model);
  }
  if (const Status status = edit.status().ok() ? ir::verify(model) : edit.status(); !status.ok()) {
    model = given;
    return internal_error("rewrites left a model that is not well formed: {}; use --no-rewrites", status.message());
  }
  std::vector<Application> applications = edit.take_applications();
  std::vector<std::string> made;
  for (const Application& each : applications) {
    if (each.made) made.push_back(each.what);
  }
  if (log.request().changes) log.tell(first_run, made);
  for (const Pass* rewrite : list_of(Stage::kChip)) {
    if (is_on(*rewrite, options) || contains(options.disable, rewrite->name)) continue;
    for (Application& each : possible(model, origins, *rewrite, options)) {
      applications.push_back(std::move(each));
    }
  }
  return applications;
}

}  // namespace reef::passes
