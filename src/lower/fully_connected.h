// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// A layer whose every output depends on every input: FULLY_CONNECTED of one row, or a convolution of one pixel.
Status lower_dense(Builder& builder, std::int32_t op);

}  // namespace reef::lower
