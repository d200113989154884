// SPDX-License-Identifier: Apache-2.0
// Operators that Reef has code for and Google's compilers leave on the CPU.
#pragma once

#include <string_view>

#include "ir/op.h"

namespace reef::ops {

bool is_own_code(OpName op_type);

// The attribute of a RESHAPE or TRANSPOSE of more dimensions or elements than Google's compilers take, which Reef's
// code moves. Set by the rewrite `own-movement` and never in files.
inline constexpr char kOwnMovement[] = "reef_own_movement";

}  // namespace reef::ops
