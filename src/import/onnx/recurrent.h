// SPDX-License-Identifier: Apache-2.0
// What one direction of an LSTM, GRU or RNN node works with, for the two ways of converting it: unrolled
// (recurrent.cpp) and as one operator (sequence_lstm.cpp). Functions that are named by attributes.
#pragma once

#include "import/onnx/converter.h"

namespace reef::import {

struct ActivationSpec {
  std::string name;
  float alpha = 0, beta = 0;
};

// A function by its ONNX name in any letters, with ONNX's defaults for its parameters.
ActivationSpec activation_of(std::string name);
// An error if there is no conversion of it.
Result<Id> activate(GraphBuilder& b, const ActivationSpec& spec, Id x);

// What one direction of a cell works with. Weights are [gates * hidden, ...], gate after gate.
struct Direction {
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int gates = 1;
  bool is_reverse = false;
  Id x = kAbsent;  // [steps, batch, inputs], in the order in which steps are taken
  Id weights = kAbsent, recurrent = kAbsent;
  Id bias = kAbsent, recurrent_bias = kAbsent;  // [gates * hidden]
  Id state = kAbsent, cell = kAbsent;           // [batch, hidden]
  Id peepholes = kAbsent;                       // [3 * hidden]
  Id lengths = kAbsent;                         // [batch] int32, where they differ from `steps`
  float clip = 0;
  std::vector<ActivationSpec> activations;
};

// Whether one UNIDIRECTIONAL_SEQUENCE_LSTM computes this direction of an LSTM node.
bool fits_sequence_lstm(NodeContext& ctx, const Direction& d);
// All outputs, [steps, batch, hidden]. Precondition: it fits.
Id sequence_lstm(GraphBuilder& b, const Direction& d);

}  // namespace reef::import
