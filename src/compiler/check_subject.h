// SPDX-License-Identifier: Apache-2.0
// A plan as the report sees it.
#pragma once

#include <string_view>

#include "compiler/plan.h"
#include "report/check_report.h"

namespace reef::compiler {

// `given` is the model that was planned, as it was in `file`. All must outlive the report. `without_rewrites` is left
// to the caller, who may have a second plan.
report::CheckSubject check_subject(std::string_view file, const ir::Model& given, const Plan& plan);

}  // namespace reef::compiler
