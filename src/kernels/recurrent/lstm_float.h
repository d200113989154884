// SPDX-License-Identifier: Apache-2.0
// One step of an LSTM on floats, with float or int8 weights ("hybrid").
//
//   gate_k = f_k(W_k x + A_k aux + R_k h + p_k * c + b_k)          k: input, forget, cell, output
//   c = clip(forget * c + input * cell);  h = output * f(c);  h = clip(P h + b)   (with a projection)
// Without an input gate (CIFG) input = 1 - forget. With layer normalization the sum is normalized, scaled, and only
// then the bias is added.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/recurrent/float_vectors.h"

namespace reef::kernels {

enum LstmGateIndex { kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3, kLstmGates = 4 };

struct LstmSizes {
  std::int64_t batches = 0, inputs = 0, aux_inputs = 0, cells = 0, outputs = 0;
};

struct LstmFloatGate {
  WeightMatrix input, aux_input, recurrent;  // cells rows; `input` absent: the gate is (input gate of CIFG)
  const float* peephole = nullptr;           // cells, or null
  const float* layer_norm = nullptr;         // cells, or null
  const float* bias = nullptr;               // cells
};

struct LstmFloat {
  LstmSizes sizes;
  LstmFloatGate gates[kLstmGates];
  WeightMatrix projection;  // outputs rows, or absent: then outputs == cells
  const float* projection_bias = nullptr;
  Activation activation = Activation::kTanh;
  float cell_clip = 0, projection_clip = 0;  // 0: none
  bool is_hybrid = false;
  FloatFunctions functions = FloatFunctions::kCurrent;
  bool batch_at_once = false;  // how the reference runs it: all batch entries in a step, or one after another
  FloatQuantizer quantizer = FloatQuantizer::kSymmetric;  // of vectors for int8 weights
};

// Where one step's vectors are. Rows of different batch entries are a stride apart; states are contiguous.
struct LstmFloatStep {
  const float* input = nullptr;
  std::int64_t input_stride = 0;
  const float* aux_input = nullptr;
  std::int64_t aux_stride = 0;
  float* output = nullptr;
  std::int64_t output_stride = 0;
  float* output_state = nullptr;
  float* cell_state = nullptr;
};

// `workspace` is resized as needed and can be reused for the next step.
void run_lstm_step(const LstmFloat& lstm, const LstmFloatStep& step, std::vector<float>& workspace,
                   const ParallelFor& parallel_for);

}  // namespace reef::kernels
