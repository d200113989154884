// SPDX-License-Identifier: Apache-2.0
// All ops, from ops.def.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace reef::ops {

std::span<const OpDef* const> all_ops();

// The definition of `op`, or null: not known to this version.
const OpDef* find_op(const ir::Operator& op);
// What kind of function it is; kOther where it is not known.
Form form_of(const ir::Operator& op);
// Output 0 depends, element by element, on the inputs: kUnary, kBinary or kElementwise.
bool is_elementwise(const ir::Operator& op);

// Fails unless the numbers of inputs and outputs are within the definition's bounds and required inputs are present.
Status check_arity(const OpDef& def, const ir::Operator& op);

}  // namespace reef::ops
