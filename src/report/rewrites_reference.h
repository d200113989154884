// SPDX-License-Identifier: Apache-2.0
// docs/rewrites.md as text, generated from the list of rewrites.
#pragma once

#include <string>

namespace reef::report {

std::string rewrites_reference();

}  // namespace reef::report
