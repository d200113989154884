// SPDX-License-Identifier: Apache-2.0
// What a TFLite file must say about an operator beside its operands: code, version, kind of option table.
#pragma once

#include <string_view>

#include "ir/model.h"
#include "ir/op.h"

namespace reef::import {

// An operator without operands. `type`: of its result. The version is the one that TFLite's converter gives.
ir::Operator new_operator(OpName op, ir::DataType type, ir::Attributes attributes);

}  // namespace reef::import
