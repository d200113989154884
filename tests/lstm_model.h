// SPDX-License-Identifier: Apache-2.0
// LSTMs for tests, with weights, scales and states in the ranges that quantized models have.
#pragma once

#include <cstdint>

#include "quantized_model.h"
#include "random_choice.h"

namespace reef::testing {

struct LstmOf {
  int cells = 8;
  bool time_major = false;
  Quantized hidden = {ir::DataType::kInt8, 1.0f / 128, 0};
  int state_bits = 12;  // the state's scale is 2 to the power of -state_bits
  float cell_clip = 0;
  bool with_biases = true;
};

// UNIDIRECTIONAL_SEQUENCE_LSTM of `x`, int8 of [1, time, features] or [time, 1, features]; returns its output.
// `name`: in front of those of its states.
std::int32_t add_lstm(QuantizedModel& model, std::int32_t x, const LstmOf& lstm, RandomChoice& choice,
                      const std::string& name = "lstm");

// Any of those that the chip runs.
LstmOf random_lstm(RandomChoice& choice, int most_cells);

}  // namespace reef::testing
