// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/lstm_float.h"

#include <algorithm>

namespace reef::kernels {
namespace {

constexpr std::int64_t kProductsPerChunk = 1 << 17;  // some 50 us of work

std::int64_t rows_per_chunk(std::int64_t products_per_row) {
  return std::max<std::int64_t>(1, kProductsPerChunk / std::max<std::int64_t>(1, products_per_row));
}

SumOrder sum_order(const LstmFloat& lstm) {
  return lstm.functions == FloatFunctions::kTflite29 ? SumOrder::kTailLast : SumOrder::kStartLast;
}

// gates[k][batch][cell] = everything in front of peephole and activation.
void multiply_gates(const LstmFloat& lstm, const LstmFloatStep& step, float* gates, const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  VectorBatch input(sum_order(lstm), step.input, s.batches, s.inputs, step.input_stride);
  VectorBatch aux(sum_order(lstm), step.aux_input, s.batches, s.aux_inputs, step.aux_stride);
  VectorBatch state(sum_order(lstm), step.output_state, s.batches, s.outputs, s.outputs);
  if (lstm.is_hybrid) {
    input.quantize(lstm.quantizer);
    if (step.aux_input != nullptr) aux.quantize(lstm.quantizer);
    state.quantize(lstm.quantizer);
  }
  const std::int64_t grain = rows_per_chunk(s.batches * (s.inputs + s.aux_inputs + s.outputs));
  parallel_for(kLstmGates * s.cells, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin, rows = 0; i < end; i += rows) {
      const std::int64_t row = i % s.cells;
      rows = std::min(end - i, s.cells - row);  // of one gate
      const LstmFloatGate& gate = lstm.gates[i / s.cells];
      if (!gate.input.present()) continue;
      for (std::int64_t b = 0; b < s.batches; ++b) {
        float* sums = gates + (i / s.cells * s.batches + b) * s.cells + row;
        if (gate.layer_norm != nullptr) {
          std::fill_n(sums, rows, 0.0f);
        } else {
          std::copy_n(gate.bias + row, rows, sums);
        }
        input.add_products(gate.input, row, rows, b, sums);
        if (step.aux_input != nullptr && gate.aux_input.present()) aux.add_products(gate.aux_input, row, rows, b, sums);
        state.add_products(gate.recurrent, row, rows, b, sums);
      }
    }
  });
}

// Where the reference keeps a gate: one after another, in another order than ours.
ArrayPlace place_of(const LstmFloat& lstm, int gate, std::int64_t batch) {
  constexpr int kOrder[kLstmGates] = {0, 2, 1, 3};
  const bool has_input_gate = lstm.gates[kInputGate].input.present();
  const std::int64_t size = lstm.sizes.batches * lstm.sizes.cells;
  const std::int64_t offset = (kOrder[gate] - (has_input_gate ? 0 : 1)) * size;
  if (lstm.batch_at_once) return {offset, size, batch * lstm.sizes.cells};
  return {offset + batch * lstm.sizes.cells, lstm.sizes.cells, 0};
}

// Peephole, layer normalization and activation of one gate of one batch entry.
void finish_gate(const LstmFloat& lstm, int k, std::int64_t batch, const float* cell_state, Activation activation,
                 float* values) {
  const LstmFloatGate& gate = lstm.gates[k];
  const std::int64_t cells = lstm.sizes.cells;
  if (gate.peephole != nullptr) {
    for (std::int64_t c = 0; c < cells; ++c) values[c] += gate.peephole[c] * cell_state[c];
  }
  if (gate.layer_norm != nullptr) {
    normalize_to_unit_variance(values, cells);
    for (std::int64_t c = 0; c < cells; ++c) values[c] = values[c] * gate.layer_norm[c];
    for (std::int64_t c = 0; c < cells; ++c) values[c] += gate.bias[c];
  }
  activate(activation, lstm.functions, place_of(lstm, k, batch), values, cells);
}

// From the gates' sums to the new cell state and, in the cell gate's place, output gate * f(cell state).
void update_cells(const LstmFloat& lstm, std::int64_t batch, float* cell_state, float* gates) {
  const std::int64_t cells = lstm.sizes.cells;
  float* at[kLstmGates];
  for (int k = 0; k < kLstmGates; ++k) at[k] = gates + (k * lstm.sizes.batches + batch) * cells;
  const bool has_input_gate = lstm.gates[kInputGate].input.present();
  if (has_input_gate) {
    finish_gate(lstm, kInputGate, batch, cell_state, Activation::kSigmoid, at[kInputGate]);
  }
  finish_gate(lstm, kForgetGate, batch, cell_state, Activation::kSigmoid, at[kForgetGate]);
  finish_gate(lstm, kCellGate, batch, cell_state, lstm.activation, at[kCellGate]);
  for (std::int64_t c = 0; c < cells; ++c) {
    const float forget = at[kForgetGate][c];
    const float input = has_input_gate ? at[kInputGate][c] : 1.0f - forget;
    cell_state[c] = forget * cell_state[c] + at[kCellGate][c] * input;
  }
  clip(cell_state, cells, lstm.cell_clip);
  finish_gate(lstm, kOutputGate, batch, cell_state, Activation::kSigmoid, at[kOutputGate]);
  // Without an activation the reference forgets to copy the cell state, and takes the cell gate that is still there.
  if (lstm.activation != Activation::kNone) std::copy_n(cell_state, cells, at[kCellGate]);
  activate(lstm.activation, lstm.functions, at[kCellGate], cells);
  for (std::int64_t c = 0; c < cells; ++c) at[kCellGate][c] = at[kOutputGate][c] * at[kCellGate][c];
}

void project(const LstmFloat& lstm, const float* hidden, float* output_state, const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  VectorBatch vectors(sum_order(lstm), hidden, s.batches, s.cells, s.cells);
  if (lstm.projection.quantized != nullptr) vectors.quantize(lstm.quantizer);
  parallel_for(s.outputs, rows_per_chunk(s.batches * s.cells), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float bias = lstm.projection_bias != nullptr ? lstm.projection_bias[row] : 0.0f;
      for (std::int64_t b = 0; b < s.batches; ++b) {
        output_state[b * s.outputs + row] = vectors.add_product(bias, lstm.projection, row, b);
      }
    }
  });
  clip(output_state, s.batches * s.outputs, lstm.projection_clip);
}

}  // namespace

void run_lstm_step(const LstmFloat& lstm, const LstmFloatStep& step, std::vector<float>& workspace,
                   const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  workspace.resize(static_cast<std::size_t>(kLstmGates * s.batches * s.cells));
  multiply_gates(lstm, step, workspace.data(), parallel_for);
  for (std::int64_t b = 0; b < s.batches; ++b) update_cells(lstm, b, step.cell_state + b * s.cells, workspace.data());
  const float* hidden = workspace.data() + kCellGate * s.batches * s.cells;
  if (lstm.projection.present()) {
    project(lstm, hidden, step.output_state, parallel_for);
  } else {
    std::copy_n(hidden, s.batches * s.outputs, step.output_state);
  }
  for (std::int64_t b = 0; b < s.batches; ++b) {
    std::copy_n(step.output_state + b * s.outputs, s.outputs, step.output + b * step.output_stride);
  }
}

}  // namespace reef::kernels
