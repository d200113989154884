// SPDX-License-Identifier: Apache-2.0
// Bias correction: rounding weights shifts each output channel by the rounding errors times the mean of the inputs. The
// means are known from calibration, so the shift is taken off the bias. Zero padding is ignored, which overstates the
// shift at an image's border; whether the whole helps is measured.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "ir/op.h"
#include "quantize/graph_constants.h"
#include "quantize/session.h"
#include "quantize/weights.h"

namespace reef::quantize {
namespace {

// Of element `k` of a weight tensor: which output channel it adds to, and which channel of the input it multiplies.
struct Element {
  std::size_t output, input;
};
Element element(const ir::Operator& op, const ir::Shape& shape, std::size_t k, std::size_t input_channels) {
  const auto last = static_cast<std::size_t>(shape.last());
  if (op.type == Op::DEPTHWISE_CONV_2D) return {k % last, (k % last) * input_channels / last};
  const std::size_t per_output = static_cast<std::size_t>(shape.product(1, shape.rank()));
  return {k / per_output, k % per_output % input_channels};
}

bool correct_one(ir::Model& model, const State& state, std::size_t number, const QuantizeOptions& options) {
  const Decision& decision = state.plan.decisions[number];
  if (decision.treatment != Treatment::kInteger || decision.rule->kind != RuleKind::kWeighted) return false;
  ir::Subgraph& graph = model.subgraphs[0];
  ir::Operator& op = graph.operators[number];
  const OpRule& rule = *decision.rule;
  const auto bias_place = static_cast<std::size_t>(rule.bias);
  if (op.inputs.size() <= bias_place || op.inputs[bias_place] < 0) return false;
  const auto input = static_cast<std::size_t>(op.inputs[at(rule.input)]);
  const ChannelStatistics& channels = state.calibration->tensors[input].channels;
  if (channels.count == 0) return false;
  const ir::Tensor& weights = graph.tensors[at(op.inputs[at(rule.weights)])];
  const std::vector<float> values = float_values(model, weights);
  WeightRequest request;
  request.layout = channel_layout(weights.shape, is_per_channel(op, options) ? rule.channel_axis : -1);
  request.clip = state.plan.clip_weights;
  const std::vector<float> scales = weight_scales(values, request);
  const auto rounded = state.plan.rounded_weights.find(static_cast<std::int32_t>(number));
  const std::vector<std::int8_t> q =
      rounded != state.plan.rounded_weights.end() ? rounded->second : round_weights(values, request.layout, scales);
  ir::Tensor bias_tensor = graph.tensors[at(op.inputs[bias_place])];
  std::vector<float> bias = float_values(model, bias_tensor);
  std::vector<double> shift(bias.size(), 0);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Element e = element(op, weights.shape, k, channels.sum.size());
    const double error = static_cast<double>(q[k]) * scales[request.layout.channel(k)] - values[k];
    if (e.output < shift.size() && e.input < channels.sum.size()) shift[e.output] += error * channels.mean(e.input);
  }
  for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(bias[c] - shift[c]);
  set_constant(model, bias_tensor, bias);
  op.inputs[bias_place] = static_cast<std::int32_t>(graph.tensors.size());
  graph.tensors.push_back(std::move(bias_tensor));
  return true;
}

// New tensors are constants: never observed.
State with_new_constants(State state, ir::Model model) {
  auto calibration = std::make_shared<Calibration>(*state.calibration);
  calibration->tensors.resize(model.subgraphs[0].tensors.size());
  state.requests.resize(model.subgraphs[0].tensors.size());
  state.plan.ranges.resize(model.subgraphs[0].tensors.size());
  state.calibration = std::move(calibration);
  state.model = std::make_shared<const ir::Model>(std::move(model));
  return state;
}

// How far each channel (index of the last dimension) of an output is off on average, as far as the samples show it. A
// mean over few samples is partly chance, which would be taken off these samples' outputs and put onto all others'. So
// it counts by the share of its square that is more than its standard error's.
std::vector<double> mean_errors(const Outputs& reference, const Outputs& outputs, std::size_t o, std::size_t channels) {
  std::vector<double> sum(channels, 0), squares(channels, 0), result(channels, 0);
  const auto samples = static_cast<double>(reference.size());
  for (std::size_t s = 0; s < reference.size(); ++s) {
    const std::vector<float>&a = reference[s][o], &b = outputs[s][o];
    const std::size_t size = std::min(a.size(), b.size());
    std::vector<double> of_sample(channels, 0);
    for (std::size_t i = 0; i < size; ++i) of_sample[i % channels] += static_cast<double>(b[i]) - a[i];
    for (std::size_t c = 0; c < channels; ++c) {
      const double mean =
          of_sample[c] * static_cast<double>(channels) / static_cast<double>(std::max<std::size_t>(size, 1));
      sum[c] += mean;
      squares[c] += mean * mean;
    }
  }
  if (samples < 2) return result;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / samples;
    const double error_squared = std::max(squares[c] / samples - mean * mean, 0.0) / (samples - 1);
    if (error_squared < mean * mean) result[c] = mean * (1 - error_squared / (mean * mean));
  }
  return result;
}

// The place of the bias among the inputs of an integer layer without activation; nothing: this is no such layer.
std::optional<std::size_t> bias_place_of(const ir::Operator& op, const Decision& decision) {
  if (decision.treatment != Treatment::kInteger || decision.rule->kind != RuleKind::kWeighted) return std::nullopt;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return std::nullopt;
  const auto place = static_cast<std::size_t>(decision.rule->bias);
  if (op.inputs.size() <= place || op.inputs[place] < 0) return std::nullopt;
  return place;
}

}  // namespace

// All that happens before the last layer shifts the outputs too. Those shifts are measured, not computed, and taken off
// the last layer's bias.
Status correct_outputs(Session& session) {
  ir::Model model = *session.best().model;
  ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses index(*session.best().model);
  REEF_ASSIGN_OR_RETURN(const Outputs outputs, session.best_outputs());
  int count = 0;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const std::int32_t producer = index.producer(session.compared(o));
    if (producer < 0) continue;
    ir::Operator& op = graph.operators[at(producer)];
    const auto place = bias_place_of(op, session.best().plan.decisions[at(producer)]);
    if (!place) continue;
    ir::Tensor bias_tensor = graph.tensors[at(op.inputs[*place])];
    std::vector<float> bias = float_values(model, bias_tensor);
    const std::vector<double> errors = mean_errors(session.reference(), outputs, o, bias.size());
    for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(bias[c] - errors[c]);
    set_constant(model, bias_tensor, bias);
    op.inputs[*place] = static_cast<std::int32_t>(graph.tensors.size());
    graph.tensors.push_back(std::move(bias_tensor));
    ++count;
  }
  if (count == 0) return ok_status();
  return session.consider(with_new_constants(session.best(), std::move(model)),
                          fmt::format("bias of {} output layers by measured means", count));
}

Status correct_biases(Session& session) {
  State state = session.best();
  ir::Model model = *state.model;
  bool changed = false;
  for (std::size_t i = 0; i < model.subgraphs[0].operators.size(); ++i) {
    changed = correct_one(model, state, i, session.options()) || changed;
  }
  if (!changed) return ok_status();
  return session.consider(with_new_constants(std::move(state), std::move(model)), "bias correction");
}

}  // namespace reef::quantize
