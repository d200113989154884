// SPDX-License-Identifier: Apache-2.0
// docs/micro_ops.md, generated from src/micro/operators.def.
#pragma once

#include <string>

namespace reef::report {

std::string micro_reference();

}  // namespace reef::report
