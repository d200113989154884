// SPDX-License-Identifier: Apache-2.0
// Averages over whole images.
#pragma once

#include "lower/builder.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {

// Adds the steps that average all pixels of the operator's image into its result, a vector.
Status add_global_pool(Builder& builder, std::int32_t op, std::int32_t stride, numeric::ChipActivation activation);

}  // namespace reef::lower
