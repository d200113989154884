// SPDX-License-Identifier: Apache-2.0
#include "inspect.h"

#include <map>

#include <fmt/ranges.h>

#include "console.h"
#include "import/onnx/converter.h"
#include "ir/describe.h"

namespace reef::app {
namespace {

using Json = nlohmann::ordered_json;

std::string value_text(const onnx::ValueInfo& info) {
  std::vector<std::string> dims;
  for (const onnx::Dimension& dim : info.dims) {
    dims.push_back(dim.size >= 0 ? fmt::format("{}", dim.size) : dim.symbol.empty() ? "?" : dim.symbol);
  }
  const bool is_tensor = info.kind == onnx::ValueKind::kTensor;
  return fmt::format("{}{}[{}]", is_tensor ? "" : "no tensor, ", onnx::element_type_name(info.type),
                     info.has_shape ? fmt::format("{}", fmt::join(dims, ", ")) : "any shape");
}

std::string attribute_text(const onnx::Attribute& a) {
  switch (a.kind) {
    case onnx::AttributeKind::kFloat:
      return fmt::format("{}={}", a.name, a.f);
    case onnx::AttributeKind::kInt:
      return fmt::format("{}={}", a.name, a.i);
    case onnx::AttributeKind::kString:
      return fmt::format("{}=\"{}\"", a.name, ir::describe_name(a.s));
    case onnx::AttributeKind::kInts:
      return fmt::format("{}={}", a.name, a.ints);
    case onnx::AttributeKind::kFloats:
      return fmt::format("{}={}", a.name, a.floats);
    case onnx::AttributeKind::kTensor:
      return a.tensor == nullptr
                 ? a.name
                 : fmt::format("{}=tensor {}{}", a.name, onnx::element_type_name(a.tensor->type), a.tensor->dims);
    case onnx::AttributeKind::kGraph:
      return a.graph == nullptr ? a.name : fmt::format("{}=graph of {} nodes", a.name, a.graph->nodes.size());
    default:
      return a.name;
  }
}

bool is_converted(const onnx::Model& model, const onnx::Node& node) {
  for (const onnx::Function& function : model.functions) {
    if (function.name == node.op_type && function.domain == node.domain) return true;
  }
  return import::find_converter(node.domain, node.op_type) != nullptr;
}

std::int64_t constant_bytes(const onnx::Graph& graph) {
  std::int64_t bytes = 0;
  for (const onnx::Tensor& tensor : graph.initializers) bytes += static_cast<std::int64_t>(tensor.data.size());
  return bytes;
}

}  // namespace

void print_onnx(const std::string& path, const onnx::Model& model, bool tensors) {
  std::vector<std::string> opsets;
  for (const onnx::OpsetImport& row : model.opsets) {
    opsets.push_back(fmt::format("{} {}", row.domain.empty() ? "ai.onnx" : row.domain, row.version));
  }
  print_text("{}: ONNX model, format version {}, operators of {}\n", path, model.ir_version, fmt::join(opsets, ", "));
  if (!model.producer.empty()) print_text("made by {} {}\n", model.producer, model.producer_version);
  print_text("constants: {} in {} tensors\n", ir::describe_bytes(constant_bytes(model.graph)),
             model.graph.initializers.size());
  print_text("\ngraph '{}': {} nodes\n", printable(model.graph.name), model.graph.nodes.size());
  for (const onnx::ValueInfo& info : model.graph.inputs)
    print_text("  input   '{}'  {}\n", printable(info.name), value_text(info));
  for (const onnx::ValueInfo& info : model.graph.outputs) {
    print_text("  output  '{}'  {}\n", printable(info.name), value_text(info));
  }
  std::map<std::string, int> counts;
  std::map<std::string, int> missing;
  for (const onnx::Node& node : model.graph.nodes) {
    ++counts[node.op_type];
    if (!is_converted(model, node)) ++missing[node.op_type];
  }
  std::vector<std::string> words, missing_words;
  for (const auto& [type, count] : counts) words.push_back(fmt::format("{} {}", count, type));
  for (const auto& [type, count] : missing) missing_words.push_back(fmt::format("{} {}", count, type));
  print_text("  nodes: {}\n", fmt::join(words, ", "));
  if (!missing.empty()) print_text("  not converted by this version: {}\n", fmt::join(missing_words, ", "));
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const onnx::Node& node = model.graph.nodes[i];
    std::vector<std::string> attributes;
    for (const onnx::Attribute& attribute : node.attributes) attributes.push_back(attribute_text(attribute));
    print_text("  {:>4}  {}{}{} ({}) -> {}{}{}{}\n", i, node.domain, node.domain.empty() ? "" : ".", node.op_type,
               fmt::join(node.inputs, ", "), fmt::join(node.outputs, ", "), attributes.empty() ? "" : "  {",
               fmt::join(attributes, ", "), attributes.empty() ? "" : "}");
  }
  if (!tensors) return;
  for (const onnx::Tensor& tensor : model.graph.initializers) {
    print_text("  constant '{}'  {}{}  {}\n", printable(tensor.name), onnx::element_type_name(tensor.type), tensor.dims,
               ir::describe_bytes(static_cast<std::int64_t>(tensor.data.size())));
  }
}

Json onnx_json(const std::string& path, const onnx::Model& model) {
  const auto border = [](const std::vector<onnx::ValueInfo>& infos) {
    Json list = Json::array();
    for (const onnx::ValueInfo& info : infos) list.push_back({{"name", info.name}, {"type", value_text(info)}});
    return list;
  };
  Json json = {{"file", path},
               {"format", "onnx"},
               {"format_version", model.ir_version},
               {"producer", model.producer},
               {"opsets", Json::object()},
               {"constant_bytes", constant_bytes(model.graph)},
               {"inputs", border(model.graph.inputs)},
               {"outputs", border(model.graph.outputs)},
               {"nodes", Json::array()}};
  for (const onnx::OpsetImport& row : model.opsets) json["opsets"][row.domain] = row.version;
  for (const onnx::Node& node : model.graph.nodes) {
    json["nodes"].push_back({{"name", node.name},
                             {"type", node.op_type},
                             {"domain", node.domain},
                             {"inputs", node.inputs},
                             {"outputs", node.outputs},
                             {"converted", is_converted(model, node)}});
  }
  return json;
}

}  // namespace reef::app
