// SPDX-License-Identifier: Apache-2.0
#include "prune/activations.h"

#include <utility>

#include "base/at.h"
#include "formats/tflite/operator_codes.h"
#include "ir/compact.h"
#include "ir/constants.h"
#include "ir/uses.h"
#include "prune/linear_layer.h"

namespace reef::prune {
namespace {

constexpr const char* kAttribute = "fused_activation_function";

}  // namespace

std::vector<FusedActivation> split_activations(ir::Model& model) {
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<ir::Operator> before = std::move(graph.operators);
  graph.operators.clear();
  std::vector<FusedActivation> result;
  for (ir::Operator& op : before) {
    const std::string function(op.attributes.get_enum(kAttribute, "NONE"));
    const bool is_known = function == "RELU" || function == "RELU6" || function == "RELU_N1_TO_1";
    if (!is_known || op.outputs.size() != 1) {
      graph.operators.push_back(std::move(op));
      continue;
    }
    const std::int32_t after = op.outputs[0];
    ir::Tensor linear = graph.tensors[at(after)];
    linear.name += "/linear";
    graph.tensors.push_back(std::move(linear));
    op.attributes.set(kAttribute, ir::EnumName{"NONE"});
    op.outputs = {static_cast<std::int32_t>(graph.tensors.size() - 1)};
    ir::Operator activation;
    activation.type = function;
    activation.builtin_code = tflite::builtin_code(function);
    activation.inputs = op.outputs;
    activation.outputs = {after};
    result.push_back({graph.operators.size(), function});
    graph.operators.push_back(std::move(op));
    graph.operators.push_back(std::move(activation));
  }
  return result;
}

void join_activations(ir::Model& model, const std::vector<FusedActivation>& fused) {
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<bool> stays(graph.operators.size(), true);
  for (const FusedActivation& each : fused) {
    ir::Operator& op = graph.operators[each.op];
    op.attributes.set(kAttribute, ir::EnumName{each.function});
    op.outputs = graph.operators[each.op + 1].outputs;
    stays[each.op + 1] = false;
  }
  ir::squeeze(graph.operators, stays);
  ir::drop_unused_tensors(model, 0);
  ir::drop_unused_buffers(model);
}

void own_biases(ir::Model& model) {
  const ir::Uses uses(model);
  ir::Subgraph& graph = model.subgraphs[0];
  for (const LinearLayer& layer : linear_layers(model)) {
    if (layer.bias >= 0 && uses.has_one_use(layer.bias)) continue;
    const std::size_t place = layer.kind == LinearLayer::Kind::kTransposed ? 3 : 2;
    std::vector<float> values(layer.groups * layer.outputs, 0.0f);
    if (layer.bias >= 0) values = ir::float_values(model, graph.tensors[at(layer.bias)]);
    ir::Tensor bias;
    bias.name = graph.tensors[at(layer.output)].name + "/bias";
    bias.shape = ir::Shape({static_cast<std::int32_t>(values.size())});
    ir::set_constant(model, bias, values);
    graph.tensors.push_back(std::move(bias));
    ir::Operator& op = graph.operators[layer.op];
    if (op.inputs.size() <= place) op.inputs.resize(place + 1, -1);
    op.inputs[place] = static_cast<std::int32_t>(graph.tensors.size() - 1);
    if (layer.kind == LinearLayer::Kind::kTransposed && op.version < 3) op.version = 3;  // the first with a bias
  }
}

}  // namespace reef::prune
