// SPDX-License-Identifier: Apache-2.0
// The layers of UNIDIRECTIONAL_SEQUENCE_LSTM.
//
// Each of the four gates (input, forget, cell, output, in this order) is two fully connected layers: the input's
// weights with the gate's bias, then the recurrent weights without one; their outputs are added and sent through the
// activation. The loop over time is in the program; each layer is stored once. Around them stand selection matrices
// (selection_matrix.h) that bring the time steps into place:
//
//   cached    spread(inputs, zero biases), align(1), gather(inputs),
//             [input weights + bias, recurrent weights] x 4 gates,
//             spread(cells, zero biases), align(time steps), gather(cells)
//   streamed  what the output holds before the first step: time steps * cells bytes of 0x80
//
// How it is known: every byte of the one package there is (28 inputs, 20 cells, 28 steps) and the program that uses
// them. "align(time steps)" follows from the program's strides. Other forms of the operator (projection, peepholes,
// layer normalization, coupled gates) have no package and are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/parameters/layer_parameters.h"
#include "formats/darwinn/parameters/selection_matrix.h"
#include "ir/model.h"

namespace reef::darwinn {

inline constexpr std::uint8_t kLstmInitialOutput = 0x80;

struct LstmLayer {
  std::string role;  // "forget gate, recurrent weights"
  LayerParameters layer;
};

struct LstmParameters {
  std::int32_t inputs = 0, cells = 0, time_steps = 0;
  std::vector<LstmLayer> gates;                // 8, in the order of the blob
  std::vector<SelectionMatrix> before, after;  // the matrices around them
  std::int64_t initial_output_bytes = 0;       // of kLstmInitialOutput; padded with zeros to 64 bytes in the blob
};

// The model must be verified. The layers alone, of sizes that go together: input and recurrent weights of each gate in
// turn.
Result<std::vector<LstmLayer>> lstm_gate_layers(const ir::Model& model, const ir::Subgraph& graph,
                                                const ir::Operator& op);
// Everything, of what Google's compiler would keep.
Result<LstmParameters> lstm_parameters_of(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op);

}  // namespace reef::darwinn
