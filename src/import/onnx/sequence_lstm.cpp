// SPDX-License-Identifier: Apache-2.0
// A whole LSTM as one UNIDIRECTIONAL_SEQUENCE_LSTM.
//
// TFLite's operator keeps its state from one run of the model to the next, ONNX's node starts anew with zeros. So that
// both mean the same in any runtime, steps are put before the first and one element beside the inputs: it is large in
// those steps and 0 in all others, and its weights shut the input, forget and output gates, which makes both states
// exactly 0. The gates' sum is then below -kShut / 2 as long as the recurrent products are within that, which with
// outputs of at most 1 means: rows of the recurrent weights, summed, and biases.
//
// On floats one such step would do; integers need three, and one form for both lets the quantizer exchange the one for
// the other (quantize/clearing_steps.h, which knows this form). The element's weights are as large as a gate's largest
// other weight, so that weights alone in 8 bits (one scale for a matrix) lose nothing.
#include <algorithm>
#include <cmath>

#include "import/onnx/recurrent.h"
#include "ir/op.h"

namespace reef::import {
namespace {

constexpr float kShut = 10'000;  // exp(-kShut) is 0 in float32
constexpr std::int64_t kClearingSteps = 3;

bool is_zero(GraphBuilder& b, Id x) {
  const auto values = b.float_values(x);
  return values && std::all_of(values->begin(), values->end(), [](float each) { return each == 0; });
}

// Largest sum of magnitudes of a row, over both matrices' rows.
bool is_far_below_shut(GraphBuilder& b, const Direction& d) {
  const auto weights = b.float_values(d.recurrent);
  if (!weights) return false;
  double largest = 0, sum = 0;
  for (std::size_t i = 0; i < weights->size(); ++i) {
    if (i % static_cast<std::size_t>(d.hidden) == 0) sum = 0;
    sum += std::fabs((*weights)[i]);
    largest = std::max(largest, sum);
  }
  for (const Id bias : {d.bias, d.recurrent_bias, d.peepholes}) {
    if (bias == kAbsent) continue;
    const auto values = b.float_values(bias);
    if (!values) return false;
    for (const float each : *values) largest += std::fabs(each) / static_cast<double>(values->size());
    for (const float each : *values) {
      if (!(std::fabs(each) < kShut / 8)) return false;
    }
  }
  return largest < kShut / 4;
}

Id rows_of(GraphBuilder& b, const Direction& d, Id x, int gate) {
  return slice_axis(b, x, 0, gate * d.hidden, d.hidden);
}

// [steps + kClearingSteps, batch, inputs + 1]: the steps that clear the state, then the others.
Id with_clearing_steps(GraphBuilder& b, const Direction& d, float shutter) {
  const std::int64_t width = d.inputs + 1, rows = kClearingSteps * d.batch;
  std::vector<float> first(static_cast<std::size_t>(rows * width), 0.0f);
  for (std::int64_t i = 0; i < rows; ++i) first[at((i + 1) * width - 1)] = shutter;
  const Id others = pad_constant(b, d.x, {0, 0, 0}, {0, 0, 1}, 0);
  return concat(b, {b.floats(first, shape_from({kClearingSteps, d.batch, width})), others}, 0);
}

float largest_magnitude(GraphBuilder& b, Id x) {
  float largest = 0;
  if (const auto values = b.float_values(x)) {
    for (const float each : *values) largest = std::max(largest, std::fabs(each));
  }
  return largest > 0 ? largest : 1.0f;
}

}  // namespace

bool fits_sequence_lstm(NodeContext& ctx, const Direction& d) {
  GraphBuilder& b = ctx.b;
  const auto is = [&](std::size_t i, std::string_view name) { return d.activations[i].name == name; };
  return d.lengths == kAbsent && d.clip <= 0 && ctx.int_attribute("input_forget", 0) == 0 && is(0, "sigmoid") &&
         is(1, "tanh") && is(2, "tanh") && !ctx.wants(2) && is_zero(b, d.state) && is_zero(b, d.cell) &&
         b.is_known(d.weights) && is_far_below_shut(b, d);
}

Id sequence_lstm(GraphBuilder& b, const Direction& d) {
  enum OnnxGate : int { kInput, kOutput, kForget, kCell };
  constexpr OnnxGate kTfliteOrder[] = {kInput, kForget, kCell, kOutput};
  std::vector<Id> inputs(24, kAbsent);
  const Id bias = d.bias == kAbsent ? kAbsent : add(b, d.bias, d.recurrent_bias);
  float weakest = kShut;
  for (std::size_t i = 0; i < 4; ++i) {
    const OnnxGate gate = kTfliteOrder[i];
    const Id weights = rows_of(b, d, d.weights, gate);
    const float largest = largest_magnitude(b, weights);
    if (gate != kCell) weakest = std::min(weakest, largest);
    const Id shut = b.filled(ir::DataType::kFloat32, shape_from({d.hidden, 1}), gate == kCell ? 0 : -largest);
    inputs[1 + i] = concat(b, {weights, shut}, 1);
    inputs[5 + i] = rows_of(b, d, d.recurrent, gate);
    inputs[12 + i] =
        bias == kAbsent ? b.filled(ir::DataType::kFloat32, shape_from({d.hidden}), 0) : rows_of(b, d, bias, gate);
  }
  inputs[0] = with_clearing_steps(b, d, kShut / weakest);
  if (d.peepholes != kAbsent) {
    constexpr int kPeepholeOfTflite[] = {0, 2, 1};  // input, forget, output of ONNX's input, output, forget
    for (std::size_t i = 0; i < 3; ++i) inputs[9 + i] = rows_of(b, d, d.peepholes, kPeepholeOfTflite[i]);
  }
  for (const std::size_t state : {std::size_t{18}, std::size_t{19}}) {
    inputs[state] = b.variable(ir::DataType::kFloat32, shape_from({d.batch, d.hidden}));
  }
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"TANH"});
  attributes.set("cell_clip", 0.0);
  attributes.set("proj_clip", 0.0);
  attributes.set("time_major", true);
  attributes.set("asymmetric_quantize_inputs", false);
  const Id all =
      b.emit(Op::UNIDIRECTIONAL_SEQUENCE_LSTM, std::move(inputs), ir::DataType::kFloat32, std::move(attributes));
  return slice_axis(b, all, 0, kClearingSteps, d.steps);
}

}  // namespace reef::import
