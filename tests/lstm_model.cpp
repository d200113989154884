// SPDX-License-Identifier: Apache-2.0
#include "lstm_model.h"

#include <cmath>

namespace reef::testing {
namespace {

// Numbers of 8 bits are up to 127, and as far from zero as 73 in the mean.
constexpr double kMeanProduct = 73.0 * 74.0;

}  // namespace

std::int32_t add_lstm(QuantizedModel& model, std::int32_t x, const LstmOf& lstm, RandomChoice& choice,
                      const std::string& name) {
  const ir::Shape shape = model.shape(x);
  const int width = shape[2], time_steps = shape[lstm.time_major ? 0 : 1];
  const float in_scale = model.tensor(x).quantization.scale[0];
  std::vector<std::int32_t> inputs(24, -1);
  inputs[0] = x;
  for (std::size_t gate = 0; gate < 4; ++gate) {
    // Arguments of the gates of about 1, some of them several times as large.
    const double wide = choice.between(50, 300) / 100.0;
    const auto weight_scale = static_cast<float>(wide / (kMeanProduct * in_scale * std::sqrt(double(width))));
    const auto recurrent_scale =
        static_cast<float>(wide / (kMeanProduct * lstm.hidden.scale * std::sqrt(double(lstm.cells))));
    inputs[1 + gate] = model.weights({lstm.cells, width}, weight_scale);
    inputs[5 + gate] = model.weights({lstm.cells, lstm.cells}, recurrent_scale);
    std::vector<std::int32_t> biases(static_cast<std::size_t>(lstm.cells));
    for (std::int32_t& bias : biases) {
      bias = lstm.with_biases
                 ? static_cast<std::int32_t>(choice.between(-500, 500) / 1000.0 / (in_scale * weight_scale))
                 : 0;
    }
    inputs[12 + gate] = model.ints(biases);
    ir::Tensor& bias = model.tensor(inputs[12 + gate]);
    bias.has_quantization = true;
    bias.quantization.scale = {in_scale * weight_scale};
    bias.quantization.zero_point = {0};
  }
  inputs[18] = model.computed({1, lstm.cells}, lstm.hidden, name + "_hidden");
  inputs[19] =
      model.computed({1, lstm.cells}, {ir::DataType::kInt16, std::ldexp(1.0f, -lstm.state_bits), 0}, name + "_cell");
  for (const std::size_t state : {18, 19}) model.tensor(inputs[state]).is_variable = true;
  const ir::Shape out = lstm.time_major ? ir::Shape{time_steps, 1, lstm.cells} : ir::Shape{1, time_steps, lstm.cells};
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"TANH"});
  attributes.set("time_major", lstm.time_major);
  attributes.set("cell_clip", double{lstm.cell_clip});
  return model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, {model.computed(out, lstm.hidden)},
                  "UnidirectionalSequenceLSTMOptions", attributes, 2);
}

LstmOf random_lstm(RandomChoice& choice, int most_cells) {
  LstmOf lstm;
  lstm.cells = choice.likely(50) ? choice.between(1, std::min(most_cells, 66)) : choice.between(1, most_cells);
  lstm.time_major = choice.likely(25);
  lstm.hidden.scale = choice.likely(70) ? 1.0f / 128 : choice.between(40, 150) / 10000.0f;
  lstm.hidden.zero_point = choice.likely(50) ? choice.between(-3, 3) : choice.zero_point(ir::DataType::kInt8);
  lstm.state_bits = choice.among({9, 10, 11, 11, 12, 12, 12, 13, 14, 15});
  lstm.cell_clip = static_cast<float>(choice.among({0, 10, 10, 10, 1, 4}));
  lstm.with_biases = choice.likely(85);
  return lstm;
}

}  // namespace reef::testing
