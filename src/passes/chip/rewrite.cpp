// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/rewrite.h"

#include <algorithm>
#include <array>

#include "ir/verify.h"
#include "passes/chip/graph_edit.h"
#include "passes/chip/rewrite_def.h"

namespace reef::rewrite {

#define REEF_REWRITE(name) extern const Rewrite name##_rewrite;
#include "passes/chip/rewrites.def"
#undef REEF_REWRITE

namespace {

constexpr std::array kRewrites = {
#define REEF_REWRITE(name) &name##_rewrite,
#include "passes/chip/rewrites.def"
#undef REEF_REWRITE
};

// Every change costs a walk over the graph. Models have hundreds of operators; a file made to keep us busy may have a
// million, and is left half done.
constexpr int kMostChanges = 4096;
constexpr int kMostPasses = 64;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_on(const RewriteInfo& info, const RewriteOptions& options) {
  if (contains(options.disable, info.name)) return false;
  return contains(options.enable, info.name) || (info.on_by_default && !options.none);
}

Status check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool known =
        std::any_of(kRewrites.begin(), kRewrites.end(), [&](const Rewrite* each) { return each->info.name == name; });
    if (known) continue;
    std::string all;
    for (const Rewrite* each : kRewrites) all += fmt::format("{}{}", all.empty() ? "" : ", ", each->info.name);
    return invalid_input("there is no rewrite '{}'; there are {}", name, all);
  }
  return ok_status();
}

bool run_once(GraphEdit& edit, const Rewrite& rewrite) {
  if (rewrite.whole != nullptr) {
    const bool changed = rewrite.whole(edit);
    if (changed) edit.remove_dead();
    return changed;
  }
  bool changed = false;
  for (std::int32_t op = 0; op < edit.op_count() && edit.changes() < kMostChanges; ++op) {
    if (!rewrite.at(edit, op)) continue;
    changed = true;
    edit.remove_dead();
  }
  return changed;
}

// What an operator that is left could become if its rewrite were on: tried on a copy.
std::vector<Application> possible(const ir::Model& model, const std::vector<std::int32_t>& origins,
                                  const Rewrite& rewrite, const RewriteOptions& options) {
  ir::Model copy = model;
  GraphEdit edit(copy, options);
  edit.set_origins(origins);
  edit.begin(rewrite.info, /*is_trial=*/true);
  run_once(edit, rewrite);
  return edit.take_applications();
}

}  // namespace

std::span<const RewriteInfo> rewrites() {
  static const auto infos = [] {
    std::array<RewriteInfo, kRewrites.size()> result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = kRewrites[i]->info;
    return result;
  }();
  return infos;
}

Result<std::vector<Application>> apply_rewrites(ir::Model& model, const RewriteOptions& options) {
  REEF_RETURN_IF_ERROR(check_names(options.enable));
  REEF_RETURN_IF_ERROR(check_names(options.disable));
  if (model.subgraphs.empty()) return std::vector<Application>();
  const ir::Model given = model;  // shares the data
  GraphEdit edit(model, options);
  const std::size_t tensor_count = model.subgraphs[0].tensors.size();
  bool changed = true;
  for (int pass = 0; pass < kMostPasses && changed && edit.changes() < kMostChanges; ++pass) {
    changed = false;
    for (const Rewrite* rewrite : kRewrites) {
      if (!is_on(rewrite->info, options)) continue;
      edit.begin(rewrite->info, /*is_trial=*/false);
      for (int i = 0; i < kMostPasses && run_once(edit, *rewrite); ++i) changed = true;
    }
  }
  if (edit.changes() > 0 || model.subgraphs[0].tensors.size() != tensor_count) edit.compact();
  if (const Status status = ir::verify(model); !status.ok()) {
    model = given;
    return internal_error("rewrites left a model that is not well formed: {}; use --no-rewrites", status.message());
  }
  std::vector<Application> applications = edit.take_applications();
  for (const Rewrite* rewrite : kRewrites) {
    if (is_on(rewrite->info, options) || contains(options.disable, rewrite->info.name)) continue;
    for (Application& each : possible(model, edit.origins(), *rewrite, options)) {
      applications.push_back(std::move(each));
    }
  }
  return applications;
}

}  // namespace reef::rewrite
