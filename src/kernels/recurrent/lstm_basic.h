// SPDX-License-Identifier: Apache-2.0
// One step of the basic LSTM: one matrix for all gates, no options. Gates lie in the order input, new input, forget,
// output.
#pragma once

#include <cstdint>

#include "kernels/recurrent/float_vectors.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

struct BasicLstmSizes {
  std::int64_t batches = 0, inputs = 0, cells = 0;
  std::int64_t depth() const { return inputs + cells; }
};

// Float: weights are [4 * cells, inputs + cells]. `gates` receives what the four gates summed up, [batches, 4 * cells];
// `joined` the joined inputs, [batches, inputs + cells].
struct BasicLstmFloat {
  BasicLstmSizes sizes;
  const float *input = nullptr, *weights = nullptr, *bias = nullptr, *previous_output = nullptr,
              *previous_state = nullptr;
  float *output = nullptr, *state = nullptr, *joined = nullptr, *gates = nullptr;
};
void run_basic_lstm(const BasicLstmFloat& lstm, const ParallelFor& parallel_for);

// uint8 activations of scale 1/128 and zero point 128; 16-bit state with 4 integer bits.
struct BasicLstmInt {
  BasicLstmSizes sizes;
  const std::uint8_t *input = nullptr, *weights = nullptr, *previous_output = nullptr;
  const std::int32_t* bias = nullptr;
  const std::int16_t* previous_state = nullptr;
  std::uint8_t *output = nullptr, *joined = nullptr;
  std::int16_t *state = nullptr, *gates = nullptr;
  std::int32_t weights_zero_point = 0;
  numeric::Multiplier factor;  // from sums to Q3.12
};
void run_basic_lstm(const BasicLstmInt& lstm, const ParallelFor& parallel_for);

}  // namespace reef::kernels
