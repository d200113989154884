// SPDX-License-Identifier: Apache-2.0
// SVDF, a rank-k approximation of a layer that sees the last `memory` inputs (Nakkiran et al., "Compressing deep neural
// networks using a rank-constrained topology", 2015).
//
// Each of units * rank filters reduces the input to one number and remembers the last `memory` of them; a second inner
// product, over time, and a sum over the rank give a unit's output. The state is [batch][filter][memory], oldest first.
#pragma once

#include <cstdint>

#include "kernels/recurrent/float_vectors.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

struct SvdfSizes {
  std::int64_t batches = 0, inputs = 0, filters = 0, memory = 0, rank = 1;
  std::int64_t units() const { return filters / rank; }
};

struct SvdfFloat {
  SvdfSizes sizes;
  WeightMatrix features;        // filters x inputs
  const float* time = nullptr;  // filters x memory
  const float* bias = nullptr;  // units, or null
  Activation activation = Activation::kNone;
  FloatFunctions functions = FloatFunctions::kCurrent;
  FloatQuantizer quantizer = FloatQuantizer::kSymmetric;
};
void run_svdf(const SvdfFloat& svdf, const float* input, float* state, float* output, const ParallelFor& parallel_for);

// Integers. State and time weights have one type, int16 or int8.
template <typename State>
struct SvdfInt {
  SvdfSizes sizes;
  const std::int8_t* features = nullptr;
  const State* time = nullptr;
  const std::int32_t* bias = nullptr;
  numeric::Multiplier feature_factor, time_factor;
  std::int32_t input_zero_point = 0, state_zero_point = 0, output_zero_point = 0;
};
void run_svdf(const SvdfInt<std::int16_t>& svdf, const std::int8_t* input, std::int16_t* state, std::int8_t* output,
              const ParallelFor& parallel_for);
void run_svdf(const SvdfInt<std::int8_t>& svdf, const std::int8_t* input, std::int8_t* state, std::int8_t* output,
              const ParallelFor& parallel_for);

}  // namespace reef::kernels
