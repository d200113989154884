// SPDX-License-Identifier: Apache-2.0
// Shared by LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: where their many operands are, the
// checks on them, and the kernels that run a cell over a sequence.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/recurrent/lstm_float.h"
#include "kernels/recurrent/lstm_int.h"
#include "ops/op_context.h"

namespace reef::ops {

// Input numbers of one gate's operands; -1: this op has none.
struct LstmGatePositions {
  int input_weights, aux_weights, recurrent_weights, peephole, bias, layer_norm;
};
struct LstmPositions {
  int input, aux_input;
  LstmGatePositions gates[kernels::kLstmGates];
  int projection, projection_bias;
  int output_state, cell_state;
};

// Operands of LSTM (full kernel) and UNIDIRECTIONAL_SEQUENCE_LSTM.
inline constexpr LstmPositions kFullLstm = {
    0,  -1, {{1, -1, 5, 9, 12, 20}, {2, -1, 6, 10, 13, 21}, {3, -1, 7, -1, 14, 22}, {4, -1, 8, 11, 15, 23}}, 16, 17,
    18, 19};
inline constexpr int kFullLstmInputs = 24;             // with layer normalization's coefficients
inline constexpr int kFullLstmInputsWithoutNorm = 20;  // older models

// A sequence as it lies in memory.
struct LstmSequence {
  std::int64_t steps = 1, batches = 1;
  bool time_major = false;  // [steps, batches, ..] or [batches, steps, ..]

  // Distance of neighbouring steps' and batch entries' rows, for rows of `length`.
  std::int64_t step_stride(std::int64_t length) const { return time_major ? batches * length : length; }
  std::int64_t batch_stride(std::int64_t length) const { return time_major ? length : steps * length; }
};

// Whose tanh and logistic function a recurrent op on floats takes.
kernels::FloatFunctions float_functions(const OpContext& ctx);

// The attribute "fused_activation_function" of a recurrent op.
Result<kernels::Activation> recurrent_activation(const ir::Attributes& attributes);

// Numbers of cells and outputs, from the output gate's weights; the input's length is `inputs`.
Result<kernels::LstmSizes> lstm_sizes(const OpContext& ctx, const LstmPositions& at, std::int64_t batches,
                                      std::int64_t inputs);

// Checks all operands against `sizes` and the types that go with the input's type.
Status check_lstm_operands(const OpContext& ctx, const LstmPositions& at, const kernels::LstmSizes& sizes);

// The kernel for float input, with float or 8-bit weights. Operands must have been checked.
Result<Kernel> prepare_float_lstm(const PrepareContext& ctx, const LstmPositions& at, const kernels::LstmSizes& sizes,
                                  const LstmSequence& sequence);
// The kernel for int8 input with 16-bit cell state; needs five intermediate tensors.
Result<Kernel> prepare_int_lstm(const PrepareContext& ctx, const LstmPositions& at, const kernels::LstmSizes& sizes,
                                const LstmSequence& sequence);

// ---- Used by the parts of this family
// --------------------------------------------------------------------------------

// A float LSTM with everything but pointers, and the pointers of this run. `recovered` holds peephole weights as
// floats.
Result<kernels::LstmFloat> float_lstm_parameters(const OpContext& ctx, const LstmPositions& at,
                                                 const kernels::LstmSizes& sizes);
void bind_float_lstm(const RunContext& ctx, const LstmPositions& at, kernels::LstmFloat& lstm,
                     std::vector<float> (&recovered)[kernels::kLstmGates]);

template <typename T>
const T* data_or_null(const OpContext& ctx, int i) {
  return i >= 0 && ctx.has_input(i) ? reinterpret_cast<const T*>(ctx.input(i).data) : nullptr;
}
inline bool has(const OpContext& ctx, int i) { return i >= 0 && ctx.has_input(i); }

}  // namespace reef::ops
