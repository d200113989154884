// SPDX-License-Identifier: Apache-2.0
// Questions about a model's constants and who reads them.
#pragma once

#include <cstdint>

#include "ir/constants.h"
#include "ir/model.h"
#include "ir/uses.h"

namespace reef::quantize {

// Takes out the operators of the first subgraph whose results nobody reads. Tensors stay, with their numbers.
void drop_unread(ir::Model& model);

using ir::float_values;
using ir::int_values;
using ir::is_float_constant;
using ir::set_constant;
// Such a one that a single operator reads and nobody outside sees: it may be changed with that operator.
bool is_own_constant(const ir::Model& model, const ir::Uses& uses, std::int32_t tensor);

}  // namespace reef::quantize
