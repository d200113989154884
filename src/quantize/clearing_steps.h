// SPDX-License-Identifier: Apache-2.0
// LSTMs that start anew in every run of the model.
//
// TFLite's operator keeps its state between runs. A network whose LSTM starts with zeros therefore gets steps in front
// that clear the state (import/onnx/sequence_lstm.cpp): an element beside the inputs shuts the gates in them. It is
// thousands of times as large as the inputs, which 8 bits cannot hold beside them. So, to quantize such a network, the
// steps are taken out: what is observed and measured runs from zeros anyway (run_samples). In the integer model they
// come back in another form.
//
//   as imported   PAD (features) -> CONCATENATION (steps) -> LSTM -> ...
//   taken out     LSTM -> PAD (steps) -> ...        the outputs of clearing steps are zeros
//   float again   as imported
//   int8          CONV_2D (features) -> PAD (steps) -> LSTM -> ...
//
// In 8 bits, `n` features are put beside the inputs whose value, the largest there is, stands in all steps but the
// clearing ones, and all weights of which are the largest of their gate; the biases of the input, forget and output
// gate are lower by what these features add. So nothing changes where they are there, to the bit, and the gates are
// shut in the clearing steps, which PAD makes of zeros. The operators around it are such that the chip runs them.
//
// Why three steps leave a state that does not depend on the one before. Gates' sums are cut off at -8 by the kernel,
// where the logistic function is 11 / 32768. Features are as many that
//   1. in the first step sums are below -1 for any outputs of the run before: outputs then are at most 0.27;
//   2. in the second step they are below -8: cells of at most 64 become at most 0.022, outputs are 11 / 32768 times
//      their tanh: 0;
//   3. in the third step outputs are still 0, and what is left of the cells is less than half a step of theirs: 0.
// What the third step adds to the cells is the same every time: at most 11 / 32768.
//
// This is TFLite's arithmetic. On the chip (numeric/chip_lstm.h) both arguments of a gate saturate at -8 and 8, so that
// recurrent products of 8 could hold a gate open for ever: there it is tested, not proved. Gates below -6.3 are
// exactly 0 there, so two steps do what three do here.
#pragma once

#include <cstdint>
#include <map>

#include "base/status.h"
#include "ir/model.h"

namespace reef::quantize {

// LSTMs without their clearing steps: the tensor that the operator computes -> how many steps were in front.
using ClearedLstms = std::map<std::int32_t, std::int32_t>;

// Takes them out of all LSTMs of the first subgraph that have them and can be had in integers. Tensors keep their
// numbers; new ones are added.
ClearedLstms take_out_clearing_steps(ir::Model& model);

// Puts them back, by what type each LSTM has now. Tensors keep their numbers. Fails where more features were needed
// than make sense.
Status put_back_clearing_steps(ir::Model& model, const ClearedLstms& lstms);

}  // namespace reef::quantize
