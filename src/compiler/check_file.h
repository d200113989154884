// SPDX-License-Identifier: Apache-2.0
// A file checked for the Edge TPU: what `reef check` prints and the library returns.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "compiler/front_end.h"
#include "compiler/plan.h"
#include "report/check_report.h"

namespace reef::compiler {

struct CheckedFile {
  std::string path;
  std::shared_ptr<const ir::Model> given;
  Plan plan;
  std::optional<Plan> without_rewrites;  // where rewrites changed something

  // Points into this.
  report::CheckSubject subject() const;
};

// Fails on a file that is no model, and on one that is compiled already.
Result<CheckedFile> check_file(const std::string& path, const PlanOptions& options,
                               const FrontEndOptions& front_end = {});

}  // namespace reef::compiler
