// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV by the convolutions that it consists of (kernels/conv/transpose_phases.h), with their packed weights.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/transpose_phases.h"
#include "kernels/matmul/float_panels.h"
#include "ops/conv_family.h"

namespace reef::ops {

// 8-bit activations and weights; T: int8_t or uint8_t. Asks for kernels::has_byte_panels() and
// kernels::suits_byte_scaling() of the factors' requantizer.
template <typename T>
Result<Kernel> transpose_bytes_kernel(const PrepareContext& ctx, const kernels::ConvShape& s, const ConvOperands& at,
                                      const IntScaling& scaling, std::int32_t input_zero_point);

// Float weights, packed for the phases of a transposed convolution.
struct FloatPhaseWeights {
  std::vector<kernels::TransposePhase> phases;
  std::vector<kernels::FloatPanels> panels;  // of each phase
  bool finite = true;                        // else the panels must not be used: 0 * infinity is not 0
};
FloatPhaseWeights pack_float_phases(const float* weights, const kernels::ConvShape& s);
// The whole output, on all threads.
void run_float_phases(const RunContext& ctx, const kernels::ConvShape& s, const float* input,
                      const FloatPhaseWeights& weights, const kernels::FloatOutput& finish, float* output);

}  // namespace reef::ops
