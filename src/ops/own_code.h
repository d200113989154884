// SPDX-License-Identifier: Apache-2.0
// Operators that Reef has code for and Google's compilers leave on the CPU.
#pragma once

#include <string_view>

namespace reef::ops {

bool is_own_code(std::string_view op_type);

}  // namespace reef::ops
