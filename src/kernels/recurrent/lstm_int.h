// SPDX-License-Identifier: Apache-2.0
// One step of a fully quantized LSTM: int8 activations and weights, 16-bit gates and cell state.
//
// Gates are in Q3.12 in front of their activation and in Q0.15 behind it. The cell state's scale is a power of two.
// The structure is lstm_float.h's; layer normalization and the peephole have integer forms of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/recurrent/float_vectors.h"
#include "kernels/recurrent/lstm_float.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

struct LstmIntGate {
  const std::int8_t* input = nullptr;      // cells x inputs; null: the gate is absent (input gate of CIFG)
  const std::int8_t* recurrent = nullptr;  // cells x outputs
  const std::int16_t* peephole = nullptr;  // cells, or null; outputs <= cells then
  const std::int16_t* layer_norm = nullptr;
  const std::int32_t* bias = nullptr;
  numeric::Multiplier input_factor, recurrent_factor, peephole_factor;
  numeric::Multiplier layer_norm_factor;  // shift + 12 must stay below 31
  std::int32_t variance_guard = 1;        // replaces a variance of zero
};

struct LstmInt {
  LstmSizes sizes;
  LstmIntGate gates[kLstmGates];
  const std::int8_t* projection = nullptr;  // outputs x cells, or null: then outputs == cells
  const std::int32_t* projection_bias = nullptr;
  numeric::Multiplier hidden_factor, projection_factor;
  std::int32_t input_zero_point = 0, output_state_zero_point = 0;
  std::int32_t hidden_offset = 0;      // added to the scaled product output gate * tanh(cell state)
  std::int32_t projection_offset = 0;  // added to that result again before the projection
  int cell_scale_exponent = -11;       // cell state's scale is 2^exponent; -15 <= exponent <= -9
  std::int16_t cell_clip = 0;
  std::int8_t projection_clip = 0;  // 0: none
  bool batch_at_once = false;       // how the reference runs it: all batch entries in a step, or one after another
};

struct LstmIntStep {
  const std::int8_t* input = nullptr;
  std::int64_t input_stride = 0;
  std::int8_t* output = nullptr;
  std::int64_t output_stride = 0;
  std::int8_t* output_state = nullptr;
  std::int16_t* cell_state = nullptr;
};

struct LstmIntWorkspace {
  std::vector<std::int16_t> gates, input, state, hidden;
};

void run_lstm_step(const LstmInt& lstm, const LstmIntStep& step, LstmIntWorkspace& workspace,
                   const ParallelFor& parallel_for);

// Shared with the other integer kernels: round(a * b / 2^shift) as 16 bits; 0 <= shift <= 31.
std::int16_t multiply_and_shift(std::int16_t a, std::int16_t b, int shift);

}  // namespace reef::kernels
