// SPDX-License-Identifier: Apache-2.0
// docs/hardware/proofs.md: which beliefs of the virtual device public programs need.
#pragma once

#include <string>

namespace reef::report {

std::string proofs_reference();

}  // namespace reef::report
