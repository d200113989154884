// SPDX-License-Identifier: Apache-2.0
// The lowerings of lowerings.def, one file each (or one for several operators that are the same on the chip).
#pragma once

#include "lower/builder.h"

namespace reef::lower {

#define REEF_LOWERING(type, function) Status function(Builder& builder, std::int32_t op);
#include "lower/lowerings.def"
#undef REEF_LOWERING

}  // namespace reef::lower
