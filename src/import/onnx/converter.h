// SPDX-License-Identifier: Apache-2.0
// What a converter of one kind of ONNX node sees and does. converters.def lists them; HACKING.md explains how to add
// one.
//
// A converter keeps ONNX's meaning, channels first included: an operator that wants channels last is put between two
// TRANSPOSE, which src/passes/float moves and cancels afterwards. Sizes are known: dynamic ones were fixed at the
// inputs. Element types: float16, bfloat16 and float64 are stored as float32, uint64 as int64, strings as numbers of
// names (Conversion::names); other types as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "formats/onnx/model.h"
#include "import/onnx/graph_builder.h"
#include "import/onnx/vocabulary.h"

namespace reef::import {

// An ONNX value: a tensor, or a sequence of tensors whose length is known.
struct Value {
  Id id = kAbsent;
  onnx::ElementType type = onnx::ElementType::kUndefined;  // as ONNX sees it
  std::shared_ptr<const std::vector<Value>> sequence;      // not null: it is one
};

// The type that stores ONNX's `type`; nullopt: none.
std::optional<ir::DataType> stored_type(onnx::ElementType type);
// A constant of `tensor`'s value in its stored type.
Result<Id> constant_of(GraphBuilder& b, const onnx::Tensor& tensor, std::string_view name);

class NodeContext;
// Converts the nodes of a graph inside a node (If, Loop, Scan): inputs by name -> outputs in order.
using GraphRunner = std::function<Result<std::vector<Value>>(const onnx::Graph&, const std::vector<Value>& inputs)>;

// What all nodes of an import share.
struct Conversion {
  bool pad_selections = false;           // see ImportOptions
  bool unroll = false;                   // likewise
  std::vector<std::string> size_inputs;  // values on which sizes depend that are known only while the model runs
  std::string producer;                  // who made the model, as it says
  bool met_open_size = false;            // a node was refused because a size is known only while the model runs
  std::vector<std::string> notes;        // sentences for the user
  std::unordered_set<std::string> read;  // names that some node reads or some graph gives out
  struct Output {
    std::string name;
    Id id = kAbsent;
  };
  std::vector<Output> extra_outputs;  // of the model, behind those that ONNX knows
  // Every string of the model, numbered in the order in which they are met: the first table's are 0, 1, 2, ...
  std::map<std::string, std::int64_t, std::less<>> names;
};

// The numbers of names (Conversion::names).
std::vector<std::int64_t> numbers_of(Conversion& conversion, const std::vector<std::string>& names);
// A constant of `tensor`'s value, also of strings.
Result<Value> constant_value(GraphBuilder& b, Conversion& conversion, const onnx::Tensor& tensor,
                             std::string_view name);

class NodeContext {
 public:
  NodeContext(const onnx::Node& node, std::int64_t opset, GraphBuilder& builder, Conversion& conversion,
              std::vector<Value> inputs, GraphRunner run_graph)
      : b(builder),
        node_(node),
        opset_(opset),
        conversion_(conversion),
        inputs_(std::move(inputs)),
        run_graph_(std::move(run_graph)) {
    outputs_.resize(node.outputs.size());
  }

  GraphBuilder& b;

  const onnx::Node& node() const { return node_; }
  std::string_view op() const { return node_.op_type; }
  std::int64_t opset() const { return opset_; }
  // Who made the model: exporters differ in what they mean by a few nodes.
  std::string_view producer() const { return conversion_.producer; }

  // ---- Inputs ----
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < input_count() && (inputs_[at(i)].id >= 0 || value(i).sequence != nullptr); }
  // kAbsent where it is left out.
  Id in(int i) const { return has(i) ? inputs_[at(i)].id : kAbsent; }
  const Value& value(int i) const { return inputs_[at(i)]; }
  // Fails unless inputs 0 to count - 1 are there, with known shapes.
  Status require_inputs(int count) const;
  // The same for nodes that take each element by itself: sizes may be known only while the model runs.
  Status require_operands(int count) const;
  Status require_nothing() const { return ok_status(); }  // for converters.def: the converter checks by itself
  // Whether input i is there, of known shape, and its value known only while the model runs. Then the sizes of what the
  // node gives may depend on it: remembered, so that a later refusal for want of a size can name it.
  bool is_open(int i);
  // Values of an input that must be known before the model runs. The refusal names it.
  Result<std::vector<std::int64_t>> ints(int i);
  Result<std::vector<float>> floats(int i);
  // An axis as a number from 0 on; an error if it is outside of a tensor of this rank.
  Result<int> axis(std::int64_t given, int rank) const;
  Result<std::vector<int>> axes(const std::vector<std::int64_t>& given, int rank) const;

  // ---- Attributes ----
  bool has_attribute(std::string_view name) const { return node_.find(name) != nullptr; }
  std::int64_t int_attribute(std::string_view name, std::int64_t fallback) const;
  float float_attribute(std::string_view name, float fallback) const;
  std::string string_attribute(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> ints_attribute(std::string_view name) const;
  std::vector<float> floats_attribute(std::string_view name) const;
  std::vector<std::string> strings_attribute(std::string_view name) const;
  const onnx::Tensor* tensor_attribute(std::string_view name) const;
  const onnx::Graph* graph_attribute(std::string_view name) const;

  std::vector<std::int64_t> numbers_of(const std::vector<std::string>& names) {
    return import::numbers_of(conversion_, names);
  }
  Result<Value> constant(const onnx::Tensor& tensor, std::string_view name) {
    return constant_value(b, conversion_, tensor, name);
  }

  // ---- Outputs ----
  int output_count() const { return static_cast<int>(outputs_.size()); }
  // Whether anybody reads output i: exporters name all outputs of a node.
  bool wants(int i) const { return i < output_count() && conversion_.read.contains(node_.outputs[at(i)]); }
  // Its ONNX type is that of what is stored, or of input 0 where that is stored in the same type.
  void out(int i, Id id);
  void out(int i, Value value);
  // The node's only output, or its last: `return ctx.give(id);`.
  template <typename IdOrValue = Value>
  Status give(IdOrValue result) {
    out(0, std::move(result));
    return ok_status();
  }
  std::vector<Value> take_outputs() { return std::move(outputs_); }
  // The same node with other inputs, as a node of standard opset `opset` would see them: converters of nodes that do
  // more than a standard one hand it over to that one's, and take_outputs() from it.
  NodeContext with_inputs(std::vector<Value> inputs, std::int64_t opset) const {
    return NodeContext(node_, opset, b, conversion_, std::move(inputs), run_graph_);
  }
  // An output of the model that ONNX does not know: "NODE'S OUTPUT_what".
  void extra_output(Id id, std::string_view what) {
    conversion_.extra_outputs.push_back({fmt::format("{}_{}", first_output(), what), id});
  }
  // Something the user should know about the conversion of this node.
  void note(std::string_view sentence) {
    conversion_.notes.push_back(fmt::format("node {} '{}': {}", op(), first_output(), sentence));
  }
  bool pads_selections() const { return conversion_.pad_selections; }
  bool unrolls() const { return conversion_.unroll; }

  Result<std::vector<Value>> run_graph(const onnx::Graph& graph, const std::vector<Value>& inputs) const {
    return run_graph_(graph, inputs);
  }

  // The input whose value was needed and is not known; -1: none.
  int needed_input() const { return needed_input_; }

 private:
  std::string first_output() const { return node_.outputs.empty() ? std::string() : node_.outputs[0]; }

  const onnx::Node& node_;
  std::int64_t opset_;
  Conversion& conversion_;
  std::vector<Value> inputs_, outputs_;
  GraphRunner run_graph_;
  int needed_input_ = -1;
};

// `b` is ctx.b, which most of what converters call takes.
using Converter = Status (*)(NodeContext& ctx, GraphBuilder& b);

// Null: there is none for this kind of node.
Converter find_converter(std::string_view domain, std::string_view op_type);

// Every kind of node that can be converted, sorted: "Add", "com.microsoft.QLinearAdd".
std::vector<std::string> all_converters();

}  // namespace reef::import
