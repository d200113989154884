// SPDX-License-Identifier: Apache-2.0
#include "compiler/check_subject.h"

namespace reef::compiler {

report::CheckSubject check_subject(std::string_view file, const ir::Model& given, const Plan& plan) {
  report::CheckSubject subject;
  subject.file = file;
  subject.given = &given;
  subject.model = plan.model.get();
  subject.source_op = &plan.source_op;
  subject.rewrites = &plan.rewrites;
  subject.assessment = &plan.assessment;
  subject.costs = plan.costs.get();
  subject.partition = &plan.partition;
  return subject;
}

}  // namespace reef::compiler
