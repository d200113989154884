// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/lstm_gates.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ir/describe.h"
#include "ir/op.h"

namespace reef::darwinn {
namespace {

// Operand positions of TFLite's operator.
constexpr std::size_t kInput = 0, kInputWeights = 1, kRecurrentWeights = 5, kPeepholes = 9, kBiases = 12,
                      kProjection = 16, kLayerNormalization = 20, kGates = 4;
constexpr std::int32_t kMaxGateChannels = 1024;  // selection matrices of more have not been seen
constexpr std::string_view kGateNames[kGates] = {"input gate", "forget gate", "cell gate", "output gate"};
constexpr std::uint8_t kGateSignBit = kLstmInitialOutput;  // int8 zero, as the chip holds it

const ir::Tensor* operand(const ir::Subgraph& graph, const ir::Operator& op, std::size_t position) {
  if (position >= op.inputs.size() || op.inputs[position] < 0) return nullptr;
  return &graph.tensors[at(op.inputs[position])];
}

Status refuse_other_forms(const ir::Subgraph& graph, const ir::Operator& op) {
  const struct {
    std::size_t first, count;
    std::string_view name;
  } kForms[] = {
      {kPeepholes, 3, "peepholes"}, {kProjection, 2, "projection"}, {kLayerNormalization, 4, "layer normalization"}};
  for (const auto& form : kForms) {
    for (std::size_t i = 0; i < form.count; ++i) {
      if (operand(graph, op, form.first + i)) return unsupported("an LSTM with {} has no known layout", form.name);
    }
  }
  return ok_status();
}

Result<LayerParameters> weights_layer(const ir::Model& model, const ir::Tensor* tensor, std::string_view role) {
  if (!tensor) return unsupported("the LSTM has no {}: coupled gates have no known layout", role);
  const Bytes& bytes = ir::constant_data(model, *tensor);
  if (tensor->type != ir::DataType::kInt8 || tensor->shape.rank() != 2 || bytes.empty()) {
    return unsupported("{} '{}' are not a constant int8 matrix", role, ir::describe_name(tensor->name));
  }
  const std::vector<std::int64_t>& zero_points = tensor->quantization.zero_point;
  if (tensor->quantization.scale.size() != 1 || (!zero_points.empty() && zero_points[0] != 0)) {
    return unsupported("{} '{}' are not symmetric with one scale", role, ir::describe_name(tensor->name));
  }
  LayerParameters layer;
  layer.shape = {LayerKind::kFullyConnected, 1, 1, tensor->shape[1], tensor->shape[0]};
  REEF_RETURN_IF_ERROR(validate(layer.shape));
  layer.weight_zero_point = kGateSignBit;
  for (const std::uint8_t byte : bytes.span()) layer.weights.push_back(static_cast<std::uint8_t>(byte ^ kGateSignBit));
  return layer;
}

Status add_biases(const ir::Model& model, const ir::Tensor* tensor, LayerParameters& layer) {
  if (!tensor) return ok_status();
  const Bytes& bytes = ir::constant_data(model, *tensor);
  const auto outputs = static_cast<std::size_t>(layer.shape.output_channels);
  if (tensor->type != ir::DataType::kInt32 || bytes.size() != 4 * outputs) {
    return unsupported("bias '{}' is not a constant of {} int32", ir::describe_name(tensor->name), outputs);
  }
  std::vector<std::int32_t> biases(outputs);
  std::memcpy(biases.data(), bytes.data(), bytes.size());
  if (std::any_of(biases.begin(), biases.end(), [](std::int32_t b) { return b != 0; }))
    layer.biases = std::move(biases);
  return ok_status();
}

}  // namespace

Result<std::vector<LstmLayer>> lstm_gate_layers(const ir::Model& model, const ir::Subgraph& graph,
                                                const ir::Operator& op) {
  if (op.type != Op::UNIDIRECTIONAL_SEQUENCE_LSTM || op.is_custom()) return unsupported("{} is not an LSTM", op.type);
  REEF_RETURN_IF_ERROR(refuse_other_forms(graph, op));
  const ir::Tensor* input = operand(graph, op, kInput);
  REEF_REQUIRE(input, "the LSTM lacks its input");
  if (input->type != ir::DataType::kInt8 || input->shape.rank() != 3) {
    return unsupported("the LSTM's input '{}' is not int8 of rank 3", ir::describe_name(input->name));
  }
  std::vector<LstmLayer> gates;
  for (std::size_t gate = 0; gate < kGates; ++gate) {
    for (const bool recurrent : {false, true}) {
      LstmLayer layer;
      layer.role = fmt::format("{}, {} weights", kGateNames[gate], recurrent ? "recurrent" : "input");
      const std::size_t position = (recurrent ? kRecurrentWeights : kInputWeights) + gate;
      REEF_ASSIGN_OR_RETURN(layer.layer, weights_layer(model, operand(graph, op, position), layer.role));
      if (!recurrent) REEF_RETURN_IF_ERROR(add_biases(model, operand(graph, op, kBiases + gate), layer.layer));
      gates.push_back(std::move(layer));
    }
  }
  const std::int32_t cells = gates[0].layer.shape.output_channels;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const LayerShape& shape = gates[i].layer.shape;
    const std::int32_t expected = i % 2 == 0 ? input->shape[2] : cells;
    REEF_REQUIRE(shape.output_channels == cells && shape.input_channels == expected,
                 "{} have shape [{}, {}], expected [{}, {}]", gates[i].role, shape.output_channels,
                 shape.input_channels, cells, expected);
  }
  return gates;
}

Result<LstmParameters> lstm_parameters_of(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op) {
  LstmParameters lstm;
  REEF_ASSIGN_OR_RETURN(lstm.gates, lstm_gate_layers(model, graph, op));
  if (op.attributes.get_bool("time_major")) return unsupported("a time-major LSTM has no known layout");
  const ir::Shape& input = operand(graph, op, kInput)->shape;
  lstm.time_steps = input[1];
  lstm.inputs = input[2];
  lstm.cells = lstm.gates[0].layer.shape.output_channels;
  if (lstm.inputs > kMaxGateChannels || lstm.cells > kMaxGateChannels || lstm.time_steps > kMaxGateChannels) {
    return unsupported("an LSTM of {} inputs, {} cells and {} time steps has no known layout", lstm.inputs, lstm.cells,
                       lstm.time_steps);
  }
  using S = SelectionMatrix;
  constexpr LayerKind kNarrow = LayerKind::kConvolution;
  lstm.before = {S::spread(lstm.inputs, true), S::align(1, false), S::gather(lstm.inputs, false, kNarrow)};
  lstm.after = {S::spread(lstm.cells, true), S::align(lstm.time_steps, false), S::gather(lstm.cells, false, kNarrow)};
  lstm.initial_output_bytes = std::int64_t{lstm.time_steps} * lstm.cells;
  return lstm;
}

}  // namespace reef::darwinn
