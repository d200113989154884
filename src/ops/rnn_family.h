// SPDX-License-Identifier: Apache-2.0
// Code shared by RNN and UNIDIRECTIONAL_SEQUENCE_RNN. See kernels/recurrent/rnn.h for the arithmetic.
#pragma once

#include "base/status.h"
#include "ops/lstm_family.h"
#include "ops/op_context.h"

namespace reef::ops {

inline constexpr int kRnnInput = 0, kRnnInputWeights = 1, kRnnRecurrentWeights = 2, kRnnBias = 3, kRnnState = 4;
inline constexpr int kRnnInputs = 5;

// Number of units, from the weights; `inputs` is the length of one input vector.
Result<std::int64_t> rnn_units(const OpContext& ctx, std::int64_t inputs);
// Checks everything and returns the kernel.
Result<Kernel> prepare_rnn(const PrepareContext& ctx, std::int64_t inputs, const LstmSequence& sequence);

}  // namespace reef::ops
