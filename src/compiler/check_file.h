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
  std::shared_ptr<const ir::Model> given;        // as in the file; of a float model, as the quantizer would leave it
  std::shared_ptr<const ir::Model> float_model;  // as in the file, where `given` was quantized on trial; else null
  std::string not_judged;  // why a float model was not quantized on trial, a clause; empty: it was, or needs none
  Plan plan;
  std::optional<Plan> without_rewrites;  // where rewrites changed something
  std::string hint, next;                // for CheckSubject

  // Points into this.
  report::CheckSubject subject() const;
};

// Fails on a file that is no model, and on one that is compiled already.
Result<CheckedFile> check_file(const std::string& path, const PlanOptions& options,
                               const FrontEndOptions& front_end = {});

}  // namespace reef::compiler
