// SPDX-License-Identifier: Apache-2.0
// Node after node by its converter; inner graphs and functions in place; refusals that name what to fix.
#include <algorithm>
#include <set>
#include <span>

#include "import/onnx/import_run.h"
#include "import/onnx/quantized_movement.h"
#include "ir/describe.h"

namespace reef::import {
namespace {

constexpr int kMaxDepth = 24;  // graphs in graphs and functions in functions
constexpr std::int64_t kMaxNodes = 1'000'000;

std::string describe_node(const onnx::Node& node) {
  const std::string& name = !node.name.empty() ? node.name : node.outputs.empty() ? node.name : node.outputs[0];
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  return fmt::format("node {}{} '{}'", ir::describe_name(domain), ir::describe_name(node.op_type),
                     ir::describe_name(name));
}

std::string_view why_not_converted(const onnx::Node& node) {
  static constexpr std::string_view kRandom[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                                 "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  if (std::find(std::begin(kRandom), std::end(kRandom), node.op_type) != std::end(kRandom)) {
    return "it draws random numbers, which ONNX leaves to the runtime, so that no result would be the right one; make "
           "them "
           "an input of the model";
  }
  return "there is no conversion for this kind of node; docs/onnx.md lists those there are";
}

void add_read_names(std::span<const onnx::Node> nodes, std::unordered_set<std::string>& names) {
  for (const onnx::Node& node : nodes) {
    for (const std::string& name : node.inputs) {
      if (!name.empty()) names.insert(name);
    }
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      for (const onnx::ValueInfo& output : attribute.graph->outputs) names.insert(output.name);
      add_read_names(attribute.graph->nodes, names);
    }
  }
}

// Nodes so that each comes behind those whose results it reads, else as they stand. ONNX asks for that order, but tools
// that change graphs (float16 converters) append nodes at the end, and ONNX Runtime sorts them as well. Nodes that wait
// for each other stay at the end.
std::vector<const onnx::Node*> in_order(const std::vector<onnx::Node>& nodes) {
  std::unordered_map<std::string, std::size_t> writers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (!name.empty()) writers.emplace(name, i);
    }
  }
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::vector<std::size_t> open(nodes.size(), 0);  // results that a node waits for
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::unordered_set<std::string> names;
    add_read_names({&nodes[i], 1}, names);
    for (const std::string& name : names) {
      const auto writer = writers.find(name);
      if (writer == writers.end() || writer->second == i) continue;
      readers[writer->second].push_back(i);
      ++open[i];
    }
  }
  std::set<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (open[i] == 0) ready.insert(i);
  }
  std::vector<const onnx::Node*> order;
  std::vector<bool> is_done(nodes.size(), false);
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    is_done[next] = true;
    order.push_back(&nodes[next]);
    for (const std::size_t reader : readers[next]) {
      if (--open[reader] == 0) ready.insert(reader);
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!is_done[i]) order.push_back(&nodes[i]);
  }
  return order;
}

}  // namespace

// Names of inner graphs and functions count for all: too many are read rather than too few.
void Importer::find_read_names(const std::vector<onnx::Node>& nodes) {
  conversion_.producer = model_.producer;
  for (const onnx::ValueInfo& output : model_.graph.outputs) conversion_.read.insert(output.name);
  add_read_names(nodes, conversion_.read);
  for (const onnx::Function& function : model_.functions) {
    conversion_.read.insert(function.outputs.begin(), function.outputs.end());
    add_read_names(function.nodes, conversion_.read);
  }
}

Result<Value> Importer::read(const std::string& name, Scope& scope) {
  for (Scope* each = &scope; each != nullptr; each = each->parent) {
    if (const auto found = each->values.find(name); found != each->values.end()) return found->second;
    const auto initializer = each->initializers.find(name);
    if (initializer == each->initializers.end()) continue;
    REEF_ASSIGN_OR_RETURN(Value value, constant_value(b_, conversion_, *initializer->second, name));
    each->values[name] = value;
    return value;
  }
  return invalid_input("it reads '{}', which nothing before it computes", ir::describe_name(name));
}

void Importer::bind(const std::string& name, Value value, Scope& scope, Id first_new) {
  if (name.empty()) return;
  if (value.id >= first_new && scope.parent == nullptr) b_.rename(value.id, name);
  value_names_.insert(name);
  scope.values[name] = std::move(value);
}

Status Importer::convert_node(const onnx::Node& node, Scope& scope, int depth) {
  if (++node_count_ > kMaxNodes) {
    return Status(StatusCode::kResourceExhausted, "with its loops unrolled the model has more than a million nodes");
  }
  REEF_RETURN_IF_ERROR(options_.budget.check("converting nodes"));
  const auto function = functions_.find({node.domain, node.op_type});
  if (function != functions_.end()) return call_function(*function->second, node, scope, depth);
  const Converter converter = find_converter(node.domain, node.op_type);
  if (converter == nullptr) return unsupported("{}", why_not_converted(node));
  std::vector<Value> inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    REEF_ASSIGN_OR_RETURN(Value value, read(name, scope));
    inputs.push_back(std::move(value));
  }
  b_.set_scope(node.outputs.empty() || node.outputs[0].empty() ? node.op_type : node.outputs[0]);
  std::int64_t opset = scope.opset;
  if (!node.domain.empty()) opset = model_.opset(node.domain);
  const Id first_new = static_cast<Id>(b_.model().subgraphs[0].tensors.size());
  const std::optional<CarriedScale> scale = as_real_numbers(b_, node, inputs);
  NodeContext context(node, opset, b_, conversion_, std::move(inputs),
                      [&](const onnx::Graph& graph, const std::vector<Value>& graph_inputs) {
                        return run_graph(graph, graph_inputs, scope, depth + 1);
                      });
  Status status = converter(context, b_);
  if (status.ok()) status = b_.status();
  if (!status.ok()) {
    if (context.needed_input() < 0) return status;
    return explain_needed(status, node.inputs[at(context.needed_input())]);
  }
  std::vector<Value> outputs = context.take_outputs();
  if (scale) as_integers(b_, *scale, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].id < 0 && outputs[i].sequence == nullptr) {
      if (!context.wants(static_cast<int>(i))) continue;
      return unsupported("its output {} '{}' is not converted; leave it out of the model if it is not needed", i,
                         node.outputs[i]);
    }
    bind(node.outputs[i], std::move(outputs[i]), scope, first_new);
  }
  return ok_status();
}

// Adds the model's inputs from which `value` is computed to the message; `is_size`: a size that is missing depends on
// it.
Status Importer::explain_needed(const Status& status, const std::string& value, bool is_size) {
  std::unordered_map<std::string, const onnx::Node*> writers;
  for (const onnx::Node& node : model_.graph.nodes) {
    for (const std::string& name : node.outputs) writers[name] = &node;
  }
  std::set<std::string> inputs;
  for (const onnx::ValueInfo& info : model_.graph.inputs) inputs.insert(info.name);
  std::set<std::string> seen = {value}, needed;
  std::vector<std::string> open = {value};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (inputs.count(name) > 0) needed.insert(name);
    if (const auto writer = writers.find(name); writer != writers.end()) {
      for (const std::string& input : writer->second->inputs) {
        if (seen.insert(input).second) open.push_back(input);
      }
    }
  }
  if (needed.empty()) return status;
  if (failure_ != nullptr) failure_->needed_inputs.assign(needed.begin(), needed.end());
  const std::string names = fmt::format("'{}'", fmt::join(needed, "', '"));
  const std::string how = fmt::format("--input-value {}:VALUE,...", *needed.begin());
  return Status(status.code(),
                is_size ? fmt::format("{}, or fix the model's input {}, on which that size depends, with {}",
                                      status.message(), names, how)
                        : fmt::format("{} from the model's input {}; fix that with {}", status.message(), names, how));
}

// Says on which inputs a size depends that is not known, and how NonMaxSuppression is made to give a fixed size.
Status Importer::explain_open_size(Status status) {
  if (status.ok() || !conversion_.met_open_size) return status;
  for (const std::string& value : conversion_.size_inputs) {
    Status explained = explain_needed(status, value, true);
    if (explained.message() != status.message()) return explained;
  }
  if (!lacks_size_of_selection()) return status;
  return Status(status.code(),
                status.message() + ", or with --pad-nms if the size is that of NonMaxSuppression's result");
}

bool Importer::lacks_size_of_selection() const {
  const auto is_choice = [](const onnx::Node& node) { return node.op_type == "NonMaxSuppression"; };
  const auto& nodes = model_.graph.nodes;
  return conversion_.met_open_size && !conversion_.pad_selections && std::any_of(nodes.begin(), nodes.end(), is_choice);
}

Status Importer::convert_nodes(const std::vector<onnx::Node>& nodes, Scope& scope, int depth) {
  REEF_REQUIRE(depth < kMaxDepth, "graphs and functions are nested more than {} deep", kMaxDepth);
  for (const onnx::Node* node : in_order(nodes)) {
    const Status status = convert_node(*node, scope, depth);
    if (!status.ok()) return status.in(describe_node(*node));
  }
  return ok_status();
}

Result<std::vector<Value>> Importer::run_graph(const onnx::Graph& graph, const std::vector<Value>& inputs, Scope& outer,
                                               int depth) {
  Scope scope;
  scope.parent = &outer;
  scope.opset = outer.opset;
  for (const onnx::Tensor& tensor : graph.initializers) scope.initializers[tensor.name] = &tensor;
  REEF_REQUIRE(inputs.size() <= graph.inputs.size(), "the inner graph '{}' takes {} inputs, but gets {}", graph.name,
               graph.inputs.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) scope.values[graph.inputs[i].name] = inputs[i];
  REEF_RETURN_IF_ERROR(convert_nodes(graph.nodes, scope, depth));
  std::vector<Value> outputs;
  for (const onnx::ValueInfo& info : graph.outputs) {
    REEF_ASSIGN_OR_RETURN(Value value, read(info.name, scope));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

namespace {

// Attributes of a node in a function's body that refer to the call's.
std::vector<onnx::Node> body_of(const onnx::Function& function, const onnx::Node& call) {
  std::vector<onnx::Node> body = function.nodes;
  for (onnx::Node& node : body) {
    std::vector<onnx::Attribute> attributes;
    for (onnx::Attribute& attribute : node.attributes) {
      if (attribute.reference.empty()) {
        attributes.push_back(std::move(attribute));
        continue;
      }
      const onnx::Attribute* source = call.find(attribute.reference);
      for (const onnx::Attribute& fallback : function.defaults) {
        if (source == nullptr && fallback.name == attribute.reference) source = &fallback;
      }
      if (source == nullptr) continue;
      const std::string name = attribute.name;
      attributes.push_back(*source);
      attributes.back().name = name;
    }
    node.attributes = std::move(attributes);
  }
  return body;
}

}  // namespace

Status Importer::call_function(const onnx::Function& function, const onnx::Node& node, Scope& scope, int depth) {
  Scope inner;  // no parent: a function sees its inputs alone
  inner.opset = scope.opset;
  for (const onnx::OpsetImport& row : function.opsets) {
    if (row.domain.empty() || row.domain == "ai.onnx") inner.opset = row.version;
  }
  Scope barrier;  // makes `inner` an inner scope, whose tensors are not named after its values
  inner.parent = &barrier;
  for (std::size_t i = 0; i < node.inputs.size() && i < function.inputs.size(); ++i) {
    if (node.inputs[i].empty()) {
      inner.values[function.inputs[i]] = Value();
      continue;
    }
    REEF_ASSIGN_OR_RETURN(inner.values[function.inputs[i]], read(node.inputs[i], scope));
  }
  for (std::size_t i = node.inputs.size(); i < function.inputs.size(); ++i) inner.values[function.inputs[i]] = Value();
  const Id first_new = static_cast<Id>(b_.model().subgraphs[0].tensors.size());
  REEF_RETURN_IF_ERROR(convert_nodes(body_of(function, node), inner, depth + 1));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    REEF_REQUIRE(i < function.outputs.size(), "the function has {} outputs; output {} is asked for",
                 function.outputs.size(), i);
    REEF_ASSIGN_OR_RETURN(Value value, read(function.outputs[i], inner));
    bind(node.outputs[i], std::move(value), scope, first_new);
  }
  return ok_status();
}

}  // namespace reef::import
