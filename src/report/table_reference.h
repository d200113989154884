// SPDX-License-Identifier: Apache-2.0
// docs/table_functions.md: how near functions by activation table come, at all 256 codes.
#pragma once

#include <string>

namespace reef::report {

std::string table_reference();

}  // namespace reef::report
