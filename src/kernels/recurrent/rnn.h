// SPDX-License-Identifier: Apache-2.0
// One step of a plain recurrent network on floats, with float or int8 weights: h = f(W x + R h + b).
#pragma once

#include <cstdint>

#include "kernels/recurrent/float_vectors.h"

namespace reef::kernels {

struct RnnFloat {
  std::int64_t batches = 0, inputs = 0, units = 0;
  WeightMatrix input, recurrent;  // units rows
  const float* bias = nullptr;
  Activation activation = Activation::kNone;
  FloatFunctions functions = FloatFunctions::kCurrent;
  FloatQuantizer quantizer = FloatQuantizer::kSymmetric;
};

// Rows of `input` and `output` of different batch entries are a stride apart; `state` is contiguous.
struct RnnFloatStep {
  const float* input = nullptr;
  std::int64_t input_stride = 0;
  float* output = nullptr;
  std::int64_t output_stride = 0;
  float* state = nullptr;
};

void run_rnn_step(const RnnFloat& rnn, const RnnFloatStep& step, const ParallelFor& parallel_for);

}  // namespace reef::kernels
