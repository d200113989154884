// SPDX-License-Identifier: Apache-2.0
// docs/passes.md as text, generated from the list of passes.
#pragma once

#include <string>

namespace reef::report {

std::string passes_reference();

}  // namespace reef::report
