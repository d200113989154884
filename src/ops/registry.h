// SPDX-License-Identifier: Apache-2.0
// All ops, from ir/ops.def.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace reef::ops {

std::span<const OpDef* const> all_ops();

// The definition of `op`, or null: not known to this version.
const OpDef* find_op(const ir::Operator& op);
// The kind of function that it is; kOther for ops that are not known.
Form form_of(const ir::Operator& op);
// Output 0 is input 0 under another shape (RESHAPE, SQUEEZE, EXPAND_DIMS).
bool has_same_bytes(const ir::Operator& op);
// False for ops that are not known.
bool has_trait(const ir::Operator& op, Trait trait);
bool has_trait(std::string_view type, Trait trait);  // of an op of TFLite's own
// Output 0 depends, element by element, on the inputs: kUnary, kBinary or kElementwise.
bool is_elementwise(const ir::Operator& op);
// It has that many inputs, and output 0 may lie where any of them does (OpDef::elementwise).
bool is_elementwise_over(const ir::Operator& op, std::size_t inputs);

// Fails unless the numbers of inputs and outputs are within the definition's bounds and required inputs are present.
Status check_arity(const OpDef& def, const ir::Operator& op);

}  // namespace reef::ops
