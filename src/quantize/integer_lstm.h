// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM in integers, as TFLite has it: 8-bit activations and weights (one scale for a matrix),
// gates and cells in 16 bits. Cells add up over all steps, and 8 bits would round them in each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/cpu/interpreter.h"
#include "ir/model.h"
#include "quantize/range_choice.h"

namespace reef::quantize {

// Positions among the operator's inputs. Gates: input, forget, cell, output.
inline constexpr int kLstmGateCount = 4;
inline constexpr std::size_t kLstmInput = 0, kLstmWeights = 1, kLstmRecurrent = 5, kLstmPeepholes = 9, kLstmBias = 12,
                             kLstmProjection = 16, kLstmOutputState = 18, kLstmCellState = 19, kLstmNorms = 20;
inline constexpr std::size_t kLstmCellGate = 2;  // the one without a logistic function

// Why this LSTM of a float model cannot be had in integers, or nothing.
std::string lstm_problem(const ir::Model& model, const ir::Operator& op);

// What the cells held after each step of a run that began with zeros: the operator itself gives out only its outputs
// and, at the end, its state. Precondition: no lstm_problem.
std::vector<float> cell_history(const cpu::OpRun& run);

// Makes `op`, whose input and output are int8 already and the other operands those of the float model `source`, an
// operator on integers. Tensors of both models have the same numbers; new ones are added. clip: see WeightRequest.
void make_integer_lstm(ir::Model& model, const ir::Model& source, ir::Operator& op, const Range& cells, bool clip);

}  // namespace reef::quantize
