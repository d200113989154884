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
constexpr int kMostPasses = 64;

bool is_on(const Pass& pass, const RewriteOptions& options) {
  if (contains(options.disable, pass.name)) return false;
  return contains(options.enable, pass.name) || (pass.on_by_default && !options.none);
}

// What an operator that is left could become if its rewrite were on: tried on a copy.
std::vector<Application> possible(const ir::Model& model, const std::vector<std::int32_t>& origins, const Pass& rewrite,
                                  const RewriteOptions& options) {
  ir::Model copy = model;
  ChipGraph edit(copy, options);
  edit.replace_operators(copy.subgraphs[0].operators, origins);
  edit.begin(rewrite, /*is_trial=*/true);
  run_pass(rewrite, edit, kMostChanges);
  return edit.take_applications();
}

}  // namespace

Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options) {
  REEF_RETURN_IF_ERROR(check_names(Stage::kChip, options.enable, "rewrite"));
  REEF_RETURN_IF_ERROR(check_names(Stage::kChip, options.disable, "rewrite"));
  if (model.subgraphs.empty()) return std::vector<Application>();
  const ir::Model given = model;  // shares the data
  ChipGraph edit(model, options);
  if (!edit.is_ordered()) return std::vector<Application>();
  const std::size_t tensor_count = model.subgraphs[0].tensors.size();
  bool changed = true;
  for (int pass = 0; pass < kMostPasses && changed && edit.changes() < kMostChanges; ++pass) {
    changed = false;
    for (const Pass* rewrite : list_of(Stage::kChip)) {
      if (!is_on(*rewrite, options)) continue;
      edit.begin(*rewrite, /*is_trial=*/false);
      for (int i = 0; i < kMostPasses && run_pass(*rewrite, edit, kMostChanges) > 0; ++i) changed = true;
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
  for (const Pass* rewrite : list_of(Stage::kChip)) {
    if (is_on(*rewrite, options) || contains(options.disable, rewrite->name)) continue;
    for (Application& each : possible(model, origins, *rewrite, options)) {
      applications.push_back(std::move(each));
    }
  }
  return applications;
}

}  // namespace reef::passes
