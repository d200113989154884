// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/borders.h"

#include <map>
#include <vector>

namespace reef::import {
namespace {

const std::set<std::string_view>& channel_ops() {
  static const std::set<std::string_view> names = {"Conv",
                                                   "DynamicQuantizeConv",
                                                   "FusedConv",
                                                   "ConvTranspose",
                                                   "ConvInteger",
                                                   "QLinearConv",
                                                   "MaxPool",
                                                   "AveragePool",
                                                   "LpPool",
                                                   "GlobalAveragePool",
                                                   "GlobalMaxPool",
                                                   "GlobalLpPool",
                                                   "Resize",
                                                   "Upsample",
                                                   "BatchNormalization",
                                                   "InstanceNormalization",
                                                   "GroupNormalization",
                                                   "LRN",
                                                   "DepthToSpace",
                                                   "SpaceToDepth",
                                                   "MaxUnpool",
                                                   "GridSample",
                                                   "QLinearAveragePool",
                                                   "QLinearGlobalAveragePool"};
  return names;
}

// Results have the axes of the first operand, in order.
const std::set<std::string_view>& transparent_ops() {
  static const std::set<std::string_view> names = {"Abs",
                                                   "Add",
                                                   "Cast",
                                                   "Ceil",
                                                   "Celu",
                                                   "Clip",
                                                   "Concat",
                                                   "Div",
                                                   "Dropout",
                                                   "DynamicQuantizeLinear",
                                                   "Elu",
                                                   "Erf",
                                                   "Exp",
                                                   "Floor",
                                                   "Gelu",
                                                   "HardSigmoid",
                                                   "HardSwish",
                                                   "Identity",
                                                   "LeakyRelu",
                                                   "Log",
                                                   "Max",
                                                   "Mean",
                                                   "Min",
                                                   "Mish",
                                                   "Mul",
                                                   "Neg",
                                                   "PRelu",
                                                   "Pad",
                                                   "Pow",
                                                   "QuantizeLinear",
                                                   "DequantizeLinear",
                                                   "Reciprocal",
                                                   "Relu",
                                                   "Round",
                                                   "Selu",
                                                   "Sigmoid",
                                                   "Sign",
                                                   "Softplus",
                                                   "Softsign",
                                                   "Sqrt",
                                                   "Sub",
                                                   "Sum",
                                                   "Tanh",
                                                   "ThresholdedRelu",
                                                   "Where",
                                                   "QLinearAdd",
                                                   "QLinearMul",
                                                   "QLinearConcat",
                                                   "QLinearLeakyRelu",
                                                   "QLinearSigmoid",
                                                   "Slice",
                                                   "Softmax",
                                                   "LogSoftmax"};
  return names;
}

constexpr int kMaxDepth = 8;  // functions in functions

// Calls of the model's functions, whose bodies are looked at as graphs of their own.
class Calls {
 public:
  Calls(const std::vector<onnx::Function>& functions, int depth) : functions_(functions), depth_(depth) {}

  bool takes_image(const onnx::Node& node, std::string_view value) {
    const onnx::Function* function = find(node);
    for (std::size_t i = 0; function != nullptr && i < node.inputs.size() && i < function->inputs.size(); ++i) {
      if (node.inputs[i] == value && borders_of(*function).inputs.count(function->inputs[i]) > 0) return true;
    }
    return false;
  }

  bool gives_image(const onnx::Node& node, std::string_view value) {
    const onnx::Function* function = find(node);
    for (std::size_t i = 0; function != nullptr && i < node.outputs.size() && i < function->outputs.size(); ++i) {
      if (node.outputs[i] == value && borders_of(*function).outputs.count(function->outputs[i]) > 0) return true;
    }
    return false;
  }

 private:
  const onnx::Function* find(const onnx::Node& node) const {
    for (const onnx::Function& function : functions_) {
      if (function.name == node.op_type && function.domain == node.domain) return &function;
    }
    return nullptr;
  }

  const ImageBorders& borders_of(const onnx::Function& function) {
    const auto found = known_.find(&function);
    if (found != known_.end()) return found->second;
    onnx::Graph body;
    body.nodes = function.nodes;
    const auto values = [](const std::vector<std::string>& names) {
      std::vector<onnx::ValueInfo> infos;
      for (const std::string& name : names) infos.emplace_back().name = name;
      return infos;
    };
    body.inputs = values(function.inputs);
    body.outputs = values(function.outputs);
    return known_[&function] = find_image_borders(body, functions_, depth_ + 1);
  }

  const std::vector<onnx::Function>& functions_;
  int depth_;
  std::map<const onnx::Function*, ImageBorders> known_;
};

}  // namespace

ImageBorders find_image_borders(const onnx::Graph& graph, const std::vector<onnx::Function>& functions, int depth) {
  if (depth > kMaxDepth) return {};
  // What a value is connected to, both ways: a walk over at most all nodes from each border.
  std::map<std::string_view, std::vector<const onnx::Node*>> readers;
  std::map<std::string_view, const onnx::Node*> writers;
  for (const onnx::Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) readers[name].push_back(&node);
    for (const std::string& name : node.outputs) writers[name] = &node;
  }
  Calls calls(functions, depth);
  ImageBorders borders;
  for (const onnx::ValueInfo& input : graph.inputs) {
    std::vector<std::string_view> open = {input.name};
    std::set<std::string_view> seen = {input.name};
    while (!open.empty()) {
      const std::string_view name = open.back();
      open.pop_back();
      for (const onnx::Node* node : readers[name]) {
        if (node->inputs[0] == name && channel_ops().count(node->op_type) > 0) borders.inputs.insert(input.name);
        if (calls.takes_image(*node, name)) borders.inputs.insert(input.name);
        if (transparent_ops().count(node->op_type) == 0) continue;
        for (const std::string& output : node->outputs) {
          if (seen.insert(output).second) open.push_back(output);
        }
      }
    }
  }
  for (const onnx::ValueInfo& output : graph.outputs) {
    std::vector<std::string_view> open = {output.name};
    std::set<std::string_view> seen = {output.name};
    while (!open.empty()) {
      const std::string_view name = open.back();
      open.pop_back();
      const auto writer = writers.find(name);
      if (writer == writers.end()) {
        if (borders.inputs.count(std::string(name)) > 0) borders.outputs.insert(output.name);
        continue;
      }
      if (channel_ops().count(writer->second->op_type) > 0) borders.outputs.insert(output.name);
      if (calls.gives_image(*writer->second, name)) borders.outputs.insert(output.name);
      if (transparent_ops().count(writer->second->op_type) == 0) continue;
      for (const std::string& input : writer->second->inputs) {
        if (seen.insert(input).second) open.push_back(input);
      }
    }
  }
  return borders;
}

}  // namespace reef::import
