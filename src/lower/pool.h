// SPDX-License-Identifier: Apache-2.0
// Pools as steps, for operators that are made of several.
#pragma once

#include "lower/builder.h"
#include "tiled/pool.h"

namespace reef::lower {

// A maximum under windows that stay inside of the image, between tensors on the grid (TiledProgram::tensors).
tiled::Pool plain_pool(const Builder& builder, std::int32_t input, std::int32_t output, const Windows& windows);

// Adds the step for an operator. The pool's tensors, windows and numbers must be filled in, and its image.
void add_pool(Builder& builder, std::int32_t op, const tiled::Pool& pool);

}  // namespace reef::lower
