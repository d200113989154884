// SPDX-License-Identifier: Apache-2.0
// RESHAPE of an image to a vector, in the way of Google's compiler.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// Adds the steps for an operator that only changes the shape of tensor `from`, which becomes `to` (both the model's).
// False: nothing was added, because this is no such case, or one that is not known or does not fit.
Result<bool> reflow_to_vector(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to);

}  // namespace reef::lower
