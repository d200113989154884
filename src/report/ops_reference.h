// SPDX-License-Identifier: Apache-2.0
// docs/ops.md as text, generated from the op definitions.
#pragma once

#include <string>

namespace reef::report {

std::string ops_reference();

}  // namespace reef::report
