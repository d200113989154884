// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/importer.h"

#include <algorithm>
#include <new>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/borders.h"
#include "import/onnx/converter.h"
#include "import/onnx/patterns.h"
#include "ir/describe.h"
#include "ir/verify.h"

namespace reef::import {
namespace {

constexpr int kMaxDepth = 24;  // graphs in graphs and functions in functions
constexpr std::int64_t kMaxNodes = 1'000'000;

// Values by name; names of an inner graph hide those of the graphs around it.
struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;
  std::unordered_map<std::string, const onnx::Tensor*> initializers;  // converted when they are first read
  std::int64_t opset = 0;
  const std::vector<onnx::OpsetImport>* opsets = nullptr;
};

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

class Importer {
 public:
  Importer(const onnx::Model& model, const ImportOptions& options, ImportFailure* failure)
      : model_(model), options_(options), failure_(failure) {
    conversion_.pad_selections = options.pad_selections;
    for (const onnx::Function& function : model.functions) functions_[{function.domain, function.name}] = &function;
  }

  Result<ImportResult> run();

 private:
  Status add_inputs(Scope& scope);
  Status add_input(const onnx::ValueInfo& info, Scope& scope);
  Result<std::vector<std::int64_t>> input_shape(const onnx::ValueInfo& info);
  Status set_outputs(Scope& scope);
  Status convert_nodes(const std::vector<onnx::Node>& nodes, Scope& scope, int depth);
  Status convert_node(const onnx::Node& node, Scope& scope, int depth);
  Status call_function(const onnx::Function& function, const onnx::Node& node, Scope& scope, int depth);
  Result<std::vector<Value>> run_graph(const onnx::Graph& graph, const std::vector<Value>& inputs, Scope& outer,
                                       int depth);
  Result<Value> read(const std::string& name, Scope& scope);
  void bind(const std::string& name, Value value, Scope& scope, Id first_new);
  Status explain_needed(const Status& status, const std::string& value);
  Status explain_open_size(Status status);
  bool keeps_nchw(const std::string& name) const;

  const onnx::Model& model_;
  const ImportOptions& options_;
  ImportFailure* failure_;
  GraphBuilder b_;
  std::map<std::pair<std::string, std::string>, const onnx::Function*> functions_;
  ImageBorders borders_;
  std::set<std::string> value_names_;
  Conversion conversion_;
  std::int64_t node_count_ = 0;
};

bool Importer::keeps_nchw(const std::string& name) const {
  return options_.keep_all_nchw ||
         std::find(options_.keep_nchw.begin(), options_.keep_nchw.end(), name) != options_.keep_nchw.end();
}

Result<std::vector<std::int64_t>> Importer::input_shape(const onnx::ValueInfo& info) {
  std::vector<std::int64_t> dims;
  if (const auto given = options_.input_shapes.find(info.name); given != options_.input_shapes.end()) {
    REEF_REQUIRE(!info.has_shape || info.dims.size() == given->second.size(),
                 "input '{}' has {} dimensions, but --input-shape gives {}", info.name, info.dims.size(),
                 given->second.size());
    dims = given->second;
  } else {
    if (!info.has_shape) {
      return unsupported("input '{}' does not say its shape; give it with --input-shape {}:SIZE,...", info.name,
                         info.name);
    }
    for (std::size_t i = 0; i < info.dims.size(); ++i) {
      std::int64_t size = info.dims[i].size;
      if (size < 0 && i == 0) {
        size = 1;
        conversion_.notes.push_back(
            fmt::format("input '{}': its first size is open{}; taken as 1 (--input-shape changes it)", info.name,
                        info.dims[i].symbol.empty() ? "" : fmt::format(" ('{}')", info.dims[i].symbol)));
      }
      if (size < 0) {
        return unsupported("input '{}': size {} is open{}; fix all sizes with --input-shape {}:SIZE,...", info.name, i,
                           info.dims[i].symbol.empty() ? "" : fmt::format(" ('{}')", info.dims[i].symbol), info.name);
      }
      dims.push_back(size);
    }
  }
  for (const std::int64_t dim : dims) {
    REEF_REQUIRE(dim >= 0 && dim < (std::int64_t{1} << 31), "input '{}' has a dimension of size {}", info.name, dim);
  }
  REEF_REQUIRE(shape_from(dims).is_usable(), "input '{}' has 2^31 elements or more", info.name);
  return dims;
}

Status Importer::add_input(const onnx::ValueInfo& info, Scope& scope) {
  Value value;
  value.type = info.type;
  if (const auto fixed = options_.input_values.find(info.name); fixed != options_.input_values.end()) {
    value.type = fixed->second.type;
    REEF_ASSIGN_OR_RETURN(value.id, constant_of(b_, fixed->second, info.name));
    scope.values[info.name] = value;
    return ok_status();
  }
  if (info.kind != onnx::ValueKind::kTensor) {
    return unsupported("input '{}' is no tensor (a sequence, map or optional); export the model with tensor inputs",
                       info.name);
  }
  const auto type = stored_type(info.type);
  if (!type) {
    return unsupported("input '{}' is of type {}, which TFLite has no operators for", info.name,
                       onnx::element_type_name(info.type));
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, input_shape(info));
  const auto rank = dims.size();
  b_.set_scope(info.name);
  if (rank >= 3 && rank <= 5 && borders_.inputs.count(info.name) > 0 && !keeps_nchw(info.name)) {
    Dims last = {dims[0]};
    last.insert(last.end(), dims.begin() + 2, dims.end());
    last.push_back(dims[1]);
    value.id = channels_first(b_, b_.input(info.name, *type, shape_from(last)));
  } else {
    value.id = b_.input(info.name, *type, shape_from(dims));
  }
  scope.values[info.name] = value;
  return b_.status();
}

Status Importer::add_inputs(Scope& scope) {
  for (const auto& [name, dims] : options_.input_shapes) {
    const auto is_it = [&, wanted = name](const onnx::ValueInfo& info) { return info.name == wanted; };
    REEF_REQUIRE(std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(), is_it),
                 "--input-shape names '{}', but the model has no such input", name);
  }
  for (const onnx::ValueInfo& info : model_.graph.inputs) {
    value_names_.insert(info.name);
    if (scope.initializers.count(info.name) > 0) continue;  // an input with a default, as old files have them
    REEF_RETURN_IF_ERROR(add_input(info, scope));
  }
  return ok_status();
}

Result<Value> Importer::read(const std::string& name, Scope& scope) {
  for (Scope* each = &scope; each != nullptr; each = each->parent) {
    if (const auto found = each->values.find(name); found != each->values.end()) return found->second;
    const auto initializer = each->initializers.find(name);
    if (initializer == each->initializers.end()) continue;
    Value value;
    value.type = initializer->second->type;
    REEF_ASSIGN_OR_RETURN(value.id, constant_of(b_, *initializer->second, name));
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
  NodeContext context(node, opset, b_, conversion_, std::move(inputs),
                      [&](const onnx::Graph& graph, const std::vector<Value>& graph_inputs) {
                        return run_graph(graph, graph_inputs, scope, depth + 1);
                      });
  Status status = converter(context);
  if (status.ok()) status = b_.status();
  if (!status.ok()) {
    if (context.needed_input() < 0) return status;
    return explain_needed(status, node.inputs[static_cast<std::size_t>(context.needed_input())]);
  }
  std::vector<Value> outputs = context.take_outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].id < 0 && outputs[i].sequence == nullptr) {
      if (node.outputs[i].empty()) continue;
      return unsupported("its output {} '{}' is not converted; leave it out of the model if it is not needed", i,
                         node.outputs[i]);
    }
    bind(node.outputs[i], std::move(outputs[i]), scope, first_new);
  }
  return ok_status();
}

// Adds the model's inputs from which `value` is computed to the message.
Status Importer::explain_needed(const Status& status, const std::string& value) {
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
  return Status(status.code(), fmt::format("{} from the model's input '{}'; fix that with --input-value {}:VALUE,...",
                                           status.message(), fmt::join(needed, "', '"), *needed.begin()));
}

// Says on which inputs a size depends that is not known, and how NonMaxSuppression is made to give a fixed size.
Status Importer::explain_open_size(Status status) {
  if (status.ok() || !conversion_.met_open_size) return status;
  for (const std::string& value : conversion_.size_inputs) {
    Status explained = explain_needed(status, value);
    if (explained.message() != status.message()) return explained;
  }
  const auto is_choice = [](const onnx::Node& node) { return node.op_type == "NonMaxSuppression"; };
  const auto& nodes = model_.graph.nodes;
  if (conversion_.pad_selections || std::none_of(nodes.begin(), nodes.end(), is_choice)) return status;
  return Status(status.code(),
                status.message() + ", or with --pad-nms if the size is that of NonMaxSuppression's result");
}

Status Importer::convert_nodes(const std::vector<onnx::Node>& nodes, Scope& scope, int depth) {
  REEF_REQUIRE(depth < kMaxDepth, "graphs and functions are nested more than {} deep", kMaxDepth);
  for (const onnx::Node& node : nodes) {
    const Status status = convert_node(node, scope, depth);
    if (!status.ok()) return status.in(describe_node(node));
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
  REEF_RETURN_IF_ERROR(convert_nodes(body_of(function, node), inner, depth + 1));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    REEF_REQUIRE(i < function.outputs.size(), "the function has {} outputs; output {} is asked for",
                 function.outputs.size(), i);
    REEF_ASSIGN_OR_RETURN(Value value, read(function.outputs[i], inner));
    bind(node.outputs[i], std::move(value), scope, Id{0});
  }
  return ok_status();
}

Status Importer::set_outputs(Scope& scope) {
  std::vector<Id> outputs;
  std::unordered_set<std::int32_t> taken(b_.model().subgraphs[0].inputs.begin(), b_.model().subgraphs[0].inputs.end());
  for (const onnx::ValueInfo& info : model_.graph.outputs) {
    REEF_ASSIGN_OR_RETURN(Value value, read(info.name, scope));
    if (value.sequence != nullptr) {
      return unsupported("output '{}' is a sequence; export the model with tensor outputs", info.name);
    }
    b_.set_scope(info.name);
    Id id = value.id;
    const int rank = b_.rank(id);
    if (b_.is_shape_known(id) && rank >= 3 && rank <= 5 && borders_.outputs.count(info.name) > 0 &&
        !keeps_nchw(info.name)) {
      id = channels_last(b_, id);
    }
    // Each output is a tensor of its own that some operator computes.
    if (!taken.insert(id).second || b_.is_constant(id)) {
      id = b_.emit("RESHAPE", {id, b_.ints(dims_of(b_.shape(id)))}, b_.type(id));
      taken.insert(id);
    }
    const auto& inputs = b_.model().subgraphs[0].inputs;
    const bool is_input = std::find(inputs.begin(), inputs.end(), value.id) != inputs.end();
    if (id != value.id && !is_input && b_.tensor(value.id).name == info.name) b_.rename(value.id, info.name + "/0");
    b_.rename(id, info.name);
    outputs.push_back(id);
  }
  for (const Conversion::Output& extra : conversion_.extra_outputs) {
    Id id = extra.id;
    if (b_.is_constant(id)) id = b_.emit("RESHAPE", {id, b_.ints(dims_of(b_.shape(id)))}, b_.type(id));
    b_.rename(id, extra.name);
    outputs.push_back(id);
  }
  b_.set_outputs(outputs);
  return b_.status();
}

Result<ImportResult> Importer::run() {
  Scope scope;
  scope.opset = model_.opset("");
  if (scope.opset == 0) scope.opset = 1;
  if (model_.graph.sparse_initializers > 0) {
    return unsupported("the model has sparse constants; export it with dense ones");
  }
  for (const onnx::Tensor& tensor : model_.graph.initializers) {
    scope.initializers[tensor.name] = &tensor;
    value_names_.insert(tensor.name);
  }
  borders_ = find_image_borders(model_.graph);
  REEF_RETURN_IF_ERROR(add_inputs(scope));
  REEF_RETURN_IF_ERROR(explain_open_size(convert_nodes(with_patterns(model_.graph), scope, 0)));
  REEF_RETURN_IF_ERROR(set_outputs(scope));
  REEF_RETURN_IF_ERROR(b_.finish());
  ImportResult result;
  result.model = b_.take();
  result.model.description =
      fmt::format("converted from ONNX by Reef{}{}", model_.producer.empty() ? "" : "; made by ", model_.producer);
  ir::Signature signature;
  signature.key = "serving_default";
  const ir::Subgraph& graph = result.model.subgraphs[0];
  for (const std::int32_t id : graph.inputs)
    signature.inputs.push_back({graph.tensors[static_cast<std::size_t>(id)].name, id});
  for (const std::int32_t id : graph.outputs)
    signature.outputs.push_back({graph.tensors[static_cast<std::size_t>(id)].name, id});
  result.model.signatures.push_back(std::move(signature));
  const Status verified = ir::verify(result.model);
  if (!verified.ok()) return internal_error("the converted model is not sound: {}", verified.message());
  result.value_names.assign(value_names_.begin(), value_names_.end());
  result.notes = std::move(conversion_.notes);
  return result;
}

}  // namespace

Result<ImportResult> import_onnx(const onnx::Model& model, const ImportOptions& options, ImportFailure* failure) {
  try {
    return Importer(model, options, failure).run();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kResourceExhausted, "not enough memory to import the model");
  }
}

Result<onnx::Tensor> input_value(const onnx::Model& model, const std::string& name,
                                 const std::vector<double>& numbers) {
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    if (info.name != name) continue;
    onnx::Tensor tensor;
    tensor.name = name;
    tensor.type = info.type;
    const auto append = [&](auto zero, std::vector<std::uint8_t>& bytes) {
      for (const double number : numbers) {
        const auto element = static_cast<decltype(zero)>(number);
        const auto* raw = reinterpret_cast<const std::uint8_t*>(&element);
        bytes.insert(bytes.end(), raw, raw + sizeof element);
      }
    };
    std::vector<std::uint8_t> bytes;
    if (info.type == onnx::ElementType::kInt64) {
      append(std::int64_t{}, bytes);
    } else if (info.type == onnx::ElementType::kInt32) {
      append(std::int32_t{}, bytes);
    } else if (info.type == onnx::ElementType::kFloat) {
      append(float{}, bytes);
    } else if (info.type == onnx::ElementType::kBool) {
      append(std::uint8_t{}, bytes);
    } else {
      return unsupported("input '{}' is of type {}; values can be given for int64, int32, float32 and bool", name,
                         onnx::element_type_name(info.type));
    }
    if (!info.has_shape || !info.dims.empty()) tensor.dims = {static_cast<std::int64_t>(numbers.size())};
    REEF_REQUIRE(!tensor.dims.empty() || numbers.size() == 1, "input '{}' is one number; {} are given", name,
                 numbers.size());
    tensor.data = Bytes(std::move(bytes));
    return tensor;
  }
  return invalid_input("--input-value names '{}', but the model has no such input", name);
}

std::string origin_of(const std::vector<std::string>& value_names, const std::string& tensor_name) {
  const auto is_value = [&](const std::string& name) {
    return std::binary_search(value_names.begin(), value_names.end(), name);
  };
  std::string name = tensor_name;
  while (true) {
    if (is_value(name)) return name;
    const std::size_t end = name.rfind('/');
    if (end == std::string::npos || name.find_first_not_of("0123456789:", end + 1) != std::string::npos) return {};
    name.resize(end);
  }
}

}  // namespace reef::import
