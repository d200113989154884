// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/darwinn/parameters/layer_parameters.h"
#include "lower/builder.h"

namespace reef::lower {

// A layer whose every output depends on every input: FULLY_CONNECTED of one row, or a convolution of one pixel.
Status lower_dense(Builder& builder, std::int32_t op);

// A layer of zeros and ones that moves bytes (selection_matrix.h), from a tensor of any layout to a vector with the
// same quantization; both TiledProgram's. `op`: whose step it is.
void add_selection(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                   const darwinn::LayerParameters& layer);

}  // namespace reef::lower
