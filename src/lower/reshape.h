// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// The operator's result has the elements of its operand, in the same order, as the same bytes.
bool keeps_elements(const Builder& builder, const ir::Operator& op);

}  // namespace reef::lower
