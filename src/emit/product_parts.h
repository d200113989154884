// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emit/blocks.h"

namespace reef::emit {

// A product with `one_by_one` set.
void multiply_one_by_one(Emission& to, const tiled::Product& product);

}  // namespace reef::emit
