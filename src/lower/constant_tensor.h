// SPDX-License-Identifier: Apache-2.0
// Constants of any shape as tensors on the chip.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// Whether the model's tensor is a constant.
bool is_constant(const Builder& builder, std::int32_t source);

// Adds the steps that make the constant, all elements in their order, as a vector (TiledProgram::tensors). Fails for
// other types than 8 bits.
Result<std::int32_t> constant_vector(Builder& builder, std::int32_t op, std::int32_t source);

}  // namespace reef::lower
