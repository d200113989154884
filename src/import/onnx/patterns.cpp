// SPDX-License-Identifier: Apache-2.0
// GELU as exporters write it, x * 0.5 * (1 + erf(x / sqrt(2))), with its products in any order. Products with weights
// in 8 bits as ONNX Runtime's quantize_dynamic writes them: MatMulInteger or ConvInteger of DynamicQuantizeLinear,
// Cast, Mul by both scales. They become one node of the float activations, which are not rounded.
//
// In a model that carries scales QuantizeLinear and DequantizeLinear stand between its parts. They go with them: what
// they round there is not rounded, and one operator with integers on both sides is left.
#include "import/onnx/patterns.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace reef::import {
namespace {

class Matcher {
 public:
  explicit Matcher(const onnx::Graph& graph) : graph_(graph) {
    for (const onnx::Tensor& tensor : graph.initializers) constants_[tensor.name] = &tensor;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const onnx::Node& node = graph.nodes[i];
      for (const std::string& name : node.inputs) readers_[name].push_back(i);
      for (const std::string& name : node.outputs) writers_[name] = i;
      if (node.op_type != "Constant" || node.outputs.empty()) continue;
      const onnx::Attribute* value = node.find("value");
      if (value != nullptr && value->tensor != nullptr) constants_[node.outputs[0]] = value->tensor.get();
      if (const onnx::Attribute* number = node.find("value_float")) numbers_[node.outputs[0]] = number->f;
    }
    for (const onnx::ValueInfo& output : graph.outputs) outputs_.insert(output.name);
  }

  std::vector<onnx::Node> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const onnx::Node& node = graph_.nodes[i];
      if (node.op_type == "Erf" && node.domain.empty()) match_gelu(i);
      if (node.op_type == "MatMulInteger" || node.op_type == "ConvInteger") match_dynamic_product(i);
    }
    std::vector<onnx::Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto found = replaced_.find(i); found != replaced_.end()) {
        nodes.push_back(found->second);
      } else if (dropped_.count(i) == 0) {
        nodes.push_back(graph_.nodes[i]);
      }
    }
    return nodes;
  }

 private:
  std::optional<float> number(const std::string& name) const {
    if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
    const auto found = constants_.find(name);
    if (found == constants_.end()) return dequantized_number(name);
    if (found->second->type != onnx::ElementType::kFloat) return std::nullopt;
    if (found->second->data.size() != sizeof(float)) return std::nullopt;
    float value = 0;
    std::memcpy(&value, found->second->data.data(), sizeof value);
    return value;
  }

  // One byte behind DequantizeLinear.
  std::optional<float> dequantized_number(const std::string& name) const {
    const auto writer = writers_.find(name);
    if (writer == writers_.end()) return std::nullopt;
    const onnx::Node& node = graph_.nodes[writer->second];
    if (node.op_type != "DequantizeLinear" || node.inputs.size() < 2) return std::nullopt;
    const auto scale = constants_.count(node.inputs[1]) > 0 ? number(node.inputs[1]) : std::nullopt;
    const auto value = byte(node.inputs[0]), zero = node.inputs.size() > 2 ? byte(node.inputs[2]) : 0;
    if (!scale || !value || !zero) return std::nullopt;
    return *scale * static_cast<float>(*value - *zero);
  }

  std::optional<int> byte(const std::string& name) const {
    const auto found = constants_.find(name);
    if (found == constants_.end() || found->second->data.size() != 1) return std::nullopt;
    const std::uint8_t bits = found->second->data.data()[0];
    if (found->second->type == onnx::ElementType::kUInt8) return bits;
    if (found->second->type == onnx::ElementType::kInt8) return static_cast<std::int8_t>(bits);
    return std::nullopt;
  }

  bool is_about(const std::string& name, double wanted) const {
    const auto value = number(name);
    return value && std::fabs(*value - wanted) < 1e-4 * wanted;
  }

  // The other operand of a two-operand node of this kind, if one operand is about `wanted`.
  std::optional<std::string> other_than(const onnx::Node& node, std::string_view op, double wanted) const {
    if (node.op_type != op || node.inputs.size() != 2) return std::nullopt;
    if (is_about(node.inputs[1], wanted)) return node.inputs[0];
    if (op != "Div" && is_about(node.inputs[0], wanted)) return node.inputs[1];
    return std::nullopt;
  }

  struct Reader {
    std::size_t node = 0;
    std::string value;                 // what it reads
    std::vector<std::size_t> between;  // QuantizeLinear and DequantizeLinear on the way
  };

  // The only node that reads the result of node i; nullopt: several, or the graph gives it out.
  std::optional<Reader> only_reader(std::size_t i) const {
    Reader reader;
    const onnx::Node* node = &graph_.nodes[i];
    while (true) {
      if (node->outputs.size() != 1 || outputs_.count(node->outputs[0]) > 0) return std::nullopt;
      const auto found = readers_.find(node->outputs[0]);
      if (found == readers_.end() || found->second.size() != 1) return std::nullopt;
      reader.node = found->second[0];
      reader.value = node->outputs[0];
      const onnx::Node& next = graph_.nodes[reader.node];
      const bool is_pair =
          next.op_type == "QuantizeLinear" || (next.op_type == "DequantizeLinear" && node->op_type == "QuantizeLinear");
      if (!is_pair || next.inputs.empty() || next.inputs[0] != reader.value) return reader;
      reader.between.push_back(reader.node);
      node = &next;
    }
  }

  // Whether `name` is x * 0.5, computed by a node that nobody else needs (returned).
  std::optional<std::size_t> half_of(const std::string& name, const std::string& x) const {
    const auto writer = writers_.find(name);
    if (writer == writers_.end() || !only_reader(writer->second)) return std::nullopt;
    const auto source = other_than(graph_.nodes[writer->second], "Mul", 0.5);
    if (!source || *source != x) return std::nullopt;
    return writer->second;
  }

  void match_gelu(std::size_t erf) {
    const onnx::Node& node = graph_.nodes[erf];
    if (node.inputs.size() != 1) return;
    const auto scale = writers_.find(node.inputs[0]);
    if (scale == writers_.end() || !only_reader(scale->second)) return;
    const onnx::Node& scaled = graph_.nodes[scale->second];
    auto x = other_than(scaled, "Div", std::sqrt(2.0));
    if (!x) x = other_than(scaled, "Mul", std::sqrt(0.5));
    if (!x) return;
    std::set<std::size_t> parts = {scale->second, erf};
    const auto take = [&](const Reader& reader) { parts.insert(reader.between.begin(), reader.between.end()); };
    const auto plus_one = only_reader(erf);
    if (!plus_one || !other_than(graph_.nodes[plus_one->node], "Add", 1.0)) return;
    take(*plus_one);
    parts.insert(plus_one->node);
    const auto first = only_reader(plus_one->node);
    if (!first || graph_.nodes[first->node].op_type != "Mul" || graph_.nodes[first->node].inputs.size() != 2) return;
    take(*first);
    const onnx::Node& product = graph_.nodes[first->node];
    const std::string& operand = product.inputs[product.inputs[0] == first->value ? 1 : 0];
    std::size_t last = first->node;
    if (const auto half = half_of(operand, *x)) {
      parts.insert(*half);
    } else {
      const auto second = only_reader(first->node);
      if (!second || graph_.nodes[second->node].op_type != "Mul") return;
      const onnx::Node& outer = graph_.nodes[second->node];
      if (outer.inputs.size() != 2) return;
      take(*second);
      const bool x_then_half = operand == *x && other_than(outer, "Mul", 0.5).has_value();
      const bool half_then_x = is_about(operand, 0.5) && (outer.inputs[0] == *x || outer.inputs[1] == *x);
      if (!x_then_half && !half_then_x) return;
      parts.insert(first->node);
      last = second->node;
    }
    onnx::Node gelu;
    gelu.name = graph_.nodes[last].name;
    gelu.op_type = "Gelu";
    gelu.inputs = {*x};
    gelu.outputs = graph_.nodes[last].outputs;
    replaced_.emplace(last, std::move(gelu));
    dropped_.insert(parts.begin(), parts.end());
  }

  // The node that gives `name`, if it is of this kind.
  const onnx::Node* writer_of_kind(const std::string& name, std::string_view op) const {
    const auto found = writers_.find(name);
    if (found == writers_.end() || graph_.nodes[found->second].op_type != op) return nullptr;
    return &graph_.nodes[found->second];
  }

  // (x less its zero point) times weights, cast, times (x's scale times the weights').
  void match_dynamic_product(std::size_t product) {
    const onnx::Node& node = graph_.nodes[product];
    if (node.inputs.size() < 3 || constants_.count(node.inputs[1]) == 0) return;
    const onnx::Node* rounding = writer_of_kind(node.inputs[0], "DynamicQuantizeLinear");
    if (rounding == nullptr || rounding->inputs.size() != 1 || rounding->outputs.size() != 3) return;
    if (node.inputs[0] != rounding->outputs[0] || node.inputs[2] != rounding->outputs[2]) return;
    const auto cast = only_reader(product);
    if (!cast || graph_.nodes[cast->node].op_type != "Cast") return;
    const auto last = only_reader(cast->node);
    if (!last || graph_.nodes[last->node].op_type != "Mul" || graph_.nodes[last->node].inputs.size() != 2) return;
    const onnx::Node& scaled = graph_.nodes[last->node];
    const onnx::Node* scales = writer_of_kind(scaled.inputs[scaled.inputs[0] == last->value ? 1 : 0], "Mul");
    if (scales == nullptr || scales->inputs.size() != 2) return;
    const bool is_first = scales->inputs[0] == rounding->outputs[1];
    if (!is_first && scales->inputs[1] != rounding->outputs[1]) return;
    const std::string& scale = scales->inputs[is_first ? 1 : 0];
    if (constants_.count(scale) == 0) return;
    onnx::Node merged;
    merged.name = scaled.name;
    merged.op_type = node.op_type == "ConvInteger" ? "DynamicQuantizeConv" : "DynamicQuantizeMatMul";
    merged.domain = "com.microsoft";
    merged.attributes = node.attributes;
    merged.inputs = {rounding->inputs[0], node.inputs[1], scale};
    if (node.inputs.size() > 3) merged.inputs.push_back(node.inputs[3]);
    merged.outputs = scaled.outputs;
    replaced_.emplace(last->node, std::move(merged));
    dropped_.insert({product, cast->node});
  }

  const onnx::Graph& graph_;
  std::map<std::string, const onnx::Tensor*> constants_;
  std::map<std::string, float> numbers_;
  std::map<std::string, std::vector<std::size_t>> readers_;
  std::map<std::string, std::size_t> writers_;
  std::set<std::string> outputs_;
  std::map<std::size_t, onnx::Node> replaced_;
  std::set<std::size_t> dropped_;
};

}  // namespace

std::vector<onnx::Node> with_patterns(const onnx::Graph& graph) { return Matcher(graph).run(); }

}  // namespace reef::import
