// SPDX-License-Identifier: Apache-2.0
// Layers of float activations and integer weights ("hybrid") whose weights are rows of s.depth(), by packed weights.
#pragma once

#include "kernels/conv/conv_shape.h"
#include "ops/conv_family.h"

namespace reef::ops {

// Asks for kernels::has_byte_panels() and one group. Weights have one of the types that hybrid_rows() takes.
Kernel hybrid_panels_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ConvOperands& at,
                            const HybridOutput& hybrid, kernels::FloatQuantizer quantizer);

}  // namespace reef::ops
