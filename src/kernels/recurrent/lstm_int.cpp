// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/lstm_int.h"

#include <algorithm>

#include "kernels/recurrent/fixed_curves.h"
#include "kernels/recurrent/int_vectors.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {
namespace {

constexpr std::int64_t kProductsPerChunk = 1 << 18;  // some 50 us of work
constexpr std::int16_t kOne = 32767;                 // of Q0.15

std::int64_t rows_per_chunk(std::int64_t products_per_row) {
  return std::max<std::int64_t>(1, kProductsPerChunk / std::max<std::int64_t>(1, products_per_row));
}

void widen_rows(const std::int8_t* rows, std::int64_t stride, std::int64_t count, std::int64_t length,
                std::int32_t offset, std::vector<std::int16_t>& result) {
  result.resize(static_cast<std::size_t>(count * length));
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t i = 0; i < length; ++i) {
      result[static_cast<std::size_t>(r * length + i)] = static_cast<std::int16_t>(rows[r * stride + i] + offset);
    }
  }
}

// bias + a . b in a wrapping 32-bit register, scaled.
std::int32_t scaled_product(const std::int16_t* a, const std::int8_t* b, std::int64_t count, std::int32_t bias,
                            numeric::Multiplier factor) {
  const auto product = static_cast<std::int32_t>(int_dot_product(a, b, count));
  return numeric::multiply(numeric::wrapping_add(bias, product), factor);
}

void multiply_gates(const LstmInt& lstm, LstmIntWorkspace& w, const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  const std::int64_t grain = rows_per_chunk(s.batches * (s.inputs + s.outputs));
  parallel_for(kLstmGates * s.cells, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % s.cells;
      const LstmIntGate& gate = lstm.gates[i / s.cells];
      if (gate.input == nullptr) continue;
      const std::int32_t bias = gate.layer_norm != nullptr ? 0 : gate.bias[row];
      for (std::int64_t b = 0; b < s.batches; ++b) {
        const std::int32_t from_input = scaled_product(w.input.data() + b * s.inputs, gate.input + row * s.inputs,
                                                       s.inputs, bias, gate.input_factor);
        const std::int16_t sum = numeric::saturate<std::int16_t>(from_input);
        const std::int32_t from_state = scaled_product(w.state.data() + b * s.outputs, gate.recurrent + row * s.outputs,
                                                       s.outputs, 0, gate.recurrent_factor);
        w.gates[static_cast<std::size_t>((i / s.cells * s.batches + b) * s.cells + row)] =
            numeric::saturate<std::int16_t>(numeric::wrapping_add(from_state, sum));
      }
    }
  });
}

void normalize(const LstmIntGate& gate, std::int64_t cells, std::int16_t* values) {
  constexpr int kExtraBits = 10;  // normalized values carry this many more fractional bits
  constexpr std::int32_t kSquaredExtra = 1 << (2 * kExtraBits);
  constexpr int kGateFractionBits = 12;
  std::int64_t sum = 0, squares = 0;
  for (std::int64_t c = 0; c < cells; ++c) {
    sum += values[c];
    squares += static_cast<std::int64_t>(values[c]) * values[c];
  }
  const auto mean = static_cast<std::int32_t>(sum * (1 << kExtraBits) / cells);
  // Exact only where the number of cells is a power of two; the reference has it so.
  const std::int64_t variance = squares * (kSquaredExtra / cells) - static_cast<std::int64_t>(mean) * mean;
  auto whole_variance = static_cast<std::int32_t>(variance / kSquaredExtra);
  if (whole_variance < 1) whole_variance = gate.variance_guard;
  const numeric::Multiplier inverse_deviation = numeric::inverse_square_root(whole_variance);
  numeric::Multiplier factor = gate.layer_norm_factor;
  factor.shift += kGateFractionBits;
  for (std::int64_t c = 0; c < cells; ++c) {
    const std::int32_t shifted = (1 << kExtraBits) * values[c] - mean;
    const std::int32_t rescaled = numeric::multiply(shifted, inverse_deviation);
    const std::int64_t weighted =
        numeric::wrapping_add(numeric::wrapping_mul(rescaled, gate.layer_norm[c]), gate.bias[c]);
    const auto rounded =
        static_cast<std::int32_t>((weighted > 0 ? weighted + 512 : weighted - 512) / (1 << kExtraBits));
    values[c] = numeric::saturate<std::int16_t>(numeric::multiply(rounded, factor));
  }
}

// Peephole and layer normalization of one gate of one batch entry.
//
// The reference walks over batches * outputs numbers here, where it means batches * cells: with fewer outputs than
// cells the last cells get no peephole and, if the batch is processed at once, the weights are out of step.
void finish_sum(const LstmInt& lstm, const LstmIntGate& gate, std::int64_t batch, const std::int16_t* cell_state,
                std::int16_t* values) {
  const LstmSizes& s = lstm.sizes;
  if (gate.peephole != nullptr) {
    const std::int64_t first = lstm.batch_at_once ? batch * s.cells : 0;
    const std::int64_t end = std::min(s.cells, (lstm.batch_at_once ? s.batches : 1) * s.outputs - first);
    for (std::int64_t c = 0; c < end; ++c) {
      const std::int16_t weight = gate.peephole[(first + c) % s.outputs];
      const std::int32_t product = numeric::multiply(weight * cell_state[c], gate.peephole_factor);
      values[c] = numeric::saturate<std::int16_t>(numeric::wrapping_add(product, values[c]));
    }
  }
  if (gate.layer_norm != nullptr) normalize(gate, s.cells, values);
}

// From the gates' sums to the new cell state and the hidden state, which is left in w.hidden with the projection's
// offset.
void update_cells(const LstmInt& lstm, std::int64_t batch, std::int16_t* cell_state, LstmIntWorkspace& w) {
  const std::int64_t cells = lstm.sizes.cells;
  std::int16_t* at[kLstmGates];
  for (int k = 0; k < kLstmGates; ++k) at[k] = w.gates.data() + (k * lstm.sizes.batches + batch) * cells;
  const bool has_input_gate = lstm.gates[kInputGate].input != nullptr;
  for (const int k : {kInputGate, kForgetGate, kCellGate}) {
    if (k == kInputGate && !has_input_gate) continue;
    finish_sum(lstm, lstm.gates[k], batch, cell_state, at[k]);
    if (k == kCellGate) {
      tanh_q15(3, at[k], cells, at[k]);
    } else {
      logistic_q3(at[k], cells);
    }
  }
  for (std::int64_t c = 0; c < cells; ++c) {
    const std::int16_t forget = at[kForgetGate][c];
    const std::int16_t input = has_input_gate ? at[kInputGate][c] : static_cast<std::int16_t>(kOne - forget);
    const std::int16_t kept = multiply_and_shift(forget, cell_state[c], 15);
    const std::int16_t added = multiply_and_shift(input, at[kCellGate][c], 30 + lstm.cell_scale_exponent);
    cell_state[c] = numeric::saturating_add(kept, added);
    if (lstm.cell_clip > 0) {
      cell_state[c] = std::max(std::min(lstm.cell_clip, cell_state[c]), static_cast<std::int16_t>(-lstm.cell_clip));
    }
  }
  finish_sum(lstm, lstm.gates[kOutputGate], batch, cell_state, at[kOutputGate]);
  logistic_q3(at[kOutputGate], cells);
  tanh_q15(15 + lstm.cell_scale_exponent, cell_state, cells, at[kCellGate]);
  for (std::int64_t c = 0; c < cells; ++c) {
    const std::int32_t scaled = numeric::multiply(at[kOutputGate][c] * at[kCellGate][c], lstm.hidden_factor);
    const std::int8_t hidden = numeric::saturate<std::int8_t>(numeric::wrapping_add(scaled, lstm.hidden_offset));
    w.hidden[static_cast<std::size_t>(batch * cells + c)] = static_cast<std::int16_t>(hidden + lstm.projection_offset);
  }
}

void project(const LstmInt& lstm, const LstmIntWorkspace& w, std::int8_t* output_state,
             const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  parallel_for(s.outputs, rows_per_chunk(s.batches * s.cells), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int32_t bias = lstm.projection_bias != nullptr ? lstm.projection_bias[row] : 0;
      for (std::int64_t b = 0; b < s.batches; ++b) {
        const std::int32_t scaled = scaled_product(w.hidden.data() + b * s.cells, lstm.projection + row * s.cells,
                                                   s.cells, bias, lstm.projection_factor);
        std::int8_t value = numeric::saturate<std::int8_t>(numeric::wrapping_add(scaled, lstm.output_state_zero_point));
        if (lstm.projection_clip > 0) {
          value = std::max(std::min(lstm.projection_clip, value), static_cast<std::int8_t>(-lstm.projection_clip));
        }
        output_state[b * s.outputs + row] = value;
      }
    }
  });
}

}  // namespace

std::int16_t multiply_and_shift(std::int16_t a, std::int16_t b, int shift) {
  return static_cast<std::int16_t>(numeric::rounding_divide_by_power_of_two(a * b, shift));
}

void run_lstm_step(const LstmInt& lstm, const LstmIntStep& step, LstmIntWorkspace& w, const ParallelFor& parallel_for) {
  const LstmSizes& s = lstm.sizes;
  w.gates.resize(static_cast<std::size_t>(kLstmGates * s.batches * s.cells));
  w.hidden.resize(static_cast<std::size_t>(s.batches * s.cells));
  widen_rows(step.input, step.input_stride, s.batches, s.inputs, -lstm.input_zero_point, w.input);
  widen_rows(step.output_state, s.outputs, s.batches, s.outputs, -lstm.output_state_zero_point, w.state);
  multiply_gates(lstm, w, parallel_for);
  for (std::int64_t b = 0; b < s.batches; ++b) update_cells(lstm, b, step.cell_state + b * s.cells, w);
  if (lstm.projection != nullptr) {
    project(lstm, w, step.output_state, parallel_for);
  } else {
    for (std::int64_t i = 0; i < s.batches * s.cells; ++i) {
      step.output_state[i] = static_cast<std::int8_t>(w.hidden[static_cast<std::size_t>(i)] - lstm.projection_offset);
    }
  }
  for (std::int64_t b = 0; b < s.batches; ++b) {
    std::copy_n(step.output_state + b * s.outputs, s.outputs, step.output + b * step.output_stride);
  }
}

}  // namespace reef::kernels
