// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <cstring>

#include "formats/tflite/operator_codes.h"
#include "ops/registry.h"

namespace reef::simplify {
namespace {

template <typename T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> result(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
  return result;
}

template <typename To, typename From>
std::vector<To> values_of(const Bytes& bytes) {
  std::vector<From> values(bytes.size() / sizeof(From));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(From));
  return std::vector<To>(values.begin(), values.end());
}

bool is_open(const ir::Tensor& tensor) {
  return std::any_of(tensor.shape_signature.begin(), tensor.shape_signature.end(),
                     [](std::int32_t dim) { return dim < 0; });
}

constexpr int kMostAxes = 8;  // no runtime takes more

}  // namespace

Graph::Graph(ir::Model& model, std::size_t subgraph, cpu::Evaluator& evaluator)
    : model_(&model), subgraph_(subgraph), evaluator_(&evaluator) {
  buffer_uses_.assign(model.buffers.size(), 0);
  for (const ir::Subgraph& each : model.subgraphs) {
    for (const ir::Tensor& tensor : each.tensors) ++buffer_uses_[index(tensor.buffer)];
  }
  for (const ir::Metadata& metadata : model.metadata) ++buffer_uses_[index(metadata.buffer)];
  for (const std::int32_t buffer : model.metadata_buffers) {
    if (buffer >= 0 && index(buffer) < buffer_uses_.size()) ++buffer_uses_[index(buffer)];
  }
  ir::Subgraph& source = graph();
  given_tensors_ = source.tensors.size();
  producers_.assign(given_tensors_, kNone);
  users_.resize(given_tensors_);
  is_input_.assign(given_tensors_, false);
  is_output_.assign(given_tensors_, false);
  for (const std::int32_t input : source.inputs) is_input_[index(input)] = true;
  for (const std::int32_t output : source.outputs) is_output_[index(output)] = true;
  for (const ir::Signature& signature : model.signatures) {
    if (index(signature.subgraph) != subgraph) continue;
    for (const ir::SignatureTensor& each : signature.outputs) is_output_[index(each.tensor)] = true;
  }
  for (std::size_t i = 0; i < source.operators.size(); ++i) {
    Node node;
    node.op = source.operators[i];
    node.position = static_cast<std::int64_t>(i);
    node.has_effect = has_effect(node.op);
    ops_.push_back(std::move(node));
    link(static_cast<OpId>(i));
    for (const std::int32_t output : source.operators[i].outputs) {
      if (output >= 0) lost_use(output);  // it may never have had one
    }
  }
  for (OpId i = 0; i < op_slots(); ++i) {
    for (const TensorId input : op(i).inputs) {
      if (input >= 0 && producer(input) >= i) is_ordered_ = false;
    }
  }
}

bool Graph::has_effect(const ir::Operator& op) const {
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || op.outputs.empty()) return true;
  if (op.type == "WHILE" || op.type == "IF" || op.type == "CALL_ONCE" || !op.intermediates.empty()) return true;
  const auto is_state = [this](std::int32_t id) {
    return id >= 0 && (tensor(id).is_variable || tensor(id).type == ir::DataType::kResource ||
                       tensor(id).type == ir::DataType::kVariant);
  };
  return std::any_of(op.inputs.begin(), op.inputs.end(), is_state) ||
         std::any_of(op.outputs.begin(), op.outputs.end(), is_state);
}

void Graph::link(OpId id) {
  for (const TensorId input : op(id).inputs) {
    if (input >= 0) users_[index(input)].push_back(id);
  }
  for (const TensorId output : op(id).outputs) {
    if (output >= 0) producers_[index(output)] = id;
  }
}

void Graph::unlink(OpId id) {
  for (const TensorId input : op(id).inputs) {
    if (input < 0) continue;
    std::vector<OpId>& users = users_[index(input)];
    users.erase(std::find(users.begin(), users.end(), id));
    lost_use(input);
  }
  for (const TensorId output : op(id).outputs) {
    if (output >= 0 && producers_[index(output)] == id) producers_[index(output)] = kNone;
  }
}

void Graph::lost_use(TensorId tensor) { perhaps_dead_.push_back(tensor); }

bool Graph::is_constant(TensorId id) const {
  const ir::Tensor& it = tensor(id);
  if (it.is_variable || it.external_buffer != 0 || it.sparsity.has_value()) return false;
  const ir::Buffer& buffer = model_->buffers[index(it.buffer)];
  if (buffer.data.empty() && !buffer.is_empty_constant) return false;
  return !is_graph_input(id) && producer(id) == kNone;
}

bool Graph::has_one_user(TensorId id) const {
  const std::vector<OpId>& all = users(id);
  return !all.empty() && !is_graph_output(id) &&
         std::all_of(all.begin(), all.end(), [&](OpId user) { return user == all[0]; });
}

bool Graph::is_sound(OpId id) const {
  const Node& node = ops_[index(id)];
  if (!node.alive || node.has_effect || node.op.opaque_options || node.op.opaque_options_2) return false;
  const ops::OpDef* definition = ops::find_op(node.op);
  if (definition == nullptr || !ops::check_arity(*definition, node.op).ok()) return false;
  const auto is_plain = [this](TensorId tensor_id) {
    const ir::Tensor& it = tensor(tensor_id);
    return !is_open(it) && !it.is_variable && !it.sparsity && it.external_buffer == 0 && it.shape.elements() > 0 &&
           it.shape.rank() <= kMostAxes;
  };
  const std::string& type = node.op.type;
  const bool takes_bias =
      type == "CONV_2D" || type == "DEPTHWISE_CONV_2D" || type == "FULLY_CONNECTED" || type == "TRANSPOSE_CONV";
  for (std::size_t i = 0; i < node.op.inputs.size(); ++i) {
    const TensorId input = node.op.inputs[i];
    if (input < 0 ? !(takes_bias && i >= 2) : !is_plain(input)) return false;
  }
  return !node.op.inputs.empty() && std::all_of(node.op.outputs.begin(), node.op.outputs.end(),
                                                [&](TensorId output) { return output >= 0 && is_plain(output); });
}

std::optional<std::vector<std::int64_t>> Graph::ints(TensorId id) const {
  if (id < 0 || !is_constant(id)) return std::nullopt;
  const Bytes& data = ir::constant_data(*model_, tensor(id));
  if (tensor(id).type == ir::DataType::kInt32) return values_of<std::int64_t, std::int32_t>(data);
  if (tensor(id).type == ir::DataType::kInt64) return values_of<std::int64_t, std::int64_t>(data);
  return std::nullopt;
}

std::optional<std::vector<float>> Graph::floats(TensorId id) const {
  if (id < 0 || !is_constant(id) || tensor(id).type != ir::DataType::kFloat32) return std::nullopt;
  return values_of<float, float>(ir::constant_data(*model_, tensor(id)));
}

std::optional<float> Graph::uniform(TensorId id) const {
  if (id < 0 || tensor(id).type != ir::DataType::kFloat32 || !is_constant(id)) return std::nullopt;
  const Bytes& data = ir::constant_data(*model_, tensor(id));
  if (data.size() < sizeof(float)) return std::nullopt;
  for (std::size_t at = sizeof(float); at + sizeof(float) <= data.size(); at += sizeof(float)) {
    if (std::memcmp(data.data(), data.data() + at, sizeof(float)) != 0) return std::nullopt;
  }
  float value = 0;
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

TensorId Graph::add_tensor(ir::Tensor tensor) {
  graph().tensors.push_back(std::move(tensor));
  producers_.push_back(kNone);
  users_.emplace_back();
  is_input_.push_back(false);
  is_output_.push_back(false);
  return static_cast<TensorId>(graph().tensors.size()) - 1;
}

TensorId Graph::add_like(TensorId like, ir::Shape shape) {
  ir::Tensor made;
  made.name = tensor(like).name;
  made.type = tensor(like).type;
  made.shape = std::move(shape);
  made.quantization = tensor(like).quantization;
  made.has_quantization = tensor(like).has_quantization;
  return add_tensor(std::move(made));
}

TensorId Graph::add_constant(ir::Tensor tensor, std::vector<std::uint8_t> data) {
  ir::Buffer buffer;
  buffer.is_empty_constant = data.empty();
  buffer.data = Bytes(std::move(data));
  model_->buffers.push_back(std::move(buffer));
  const TensorId made = add_tensor(std::move(tensor));
  give_buffer(made, static_cast<std::int32_t>(model_->buffers.size()) - 1);
  return made;
}

TensorId Graph::add_ints(std::vector<std::int32_t> values, ir::Shape shape) {
  ir::Tensor made;
  made.name = "reef/ints";
  made.type = ir::DataType::kInt32;
  made.shape = std::move(shape);
  return add_constant(std::move(made), bytes_of(values));
}

TensorId Graph::add_ints(std::vector<std::int32_t> values) {
  const auto count = static_cast<std::int32_t>(values.size());
  return add_ints(std::move(values), {count});
}

TensorId Graph::add_floats(std::vector<float> values, ir::Shape shape, const std::string& name) {
  ir::Tensor made;
  made.name = name;
  made.shape = std::move(shape);
  return add_constant(std::move(made), bytes_of(values));
}

TensorId Graph::reshaped_constant(TensorId constant, ir::Shape shape) {
  const std::int32_t buffer = tensor(constant).buffer;
  const TensorId made = add_like(constant, std::move(shape));
  give_buffer(made, buffer);
  return made;
}

OpId Graph::add_op(OpId near, std::string_view type, std::string_view options_type, ir::Attributes attributes,
                   std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  Node node;
  node.op.type = type;
  node.op.builtin_code = tflite::builtin_code(type);
  node.op.version = tflite::operator_version(type, tensor(outputs[0]).type);
  node.op.options_type = options_type;
  node.op.attributes = std::move(attributes);
  node.op.inputs = std::move(inputs);
  node.op.outputs = std::move(outputs);
  node.position = ops_[index(near)].position;
  ops_.push_back(std::move(node));
  link(op_slots() - 1);
  return op_slots() - 1;
}

void Graph::become(OpId id, std::string_view type, std::string_view options_type, ir::Attributes attributes,
                   std::vector<TensorId> inputs) {
  const std::vector<TensorId> outputs = op(id).outputs;
  unlink(id);
  ir::Operator made;
  made.type = type;
  made.builtin_code = tflite::builtin_code(type);
  made.version = tflite::operator_version(type, tensor(outputs[0]).type);
  made.options_type = options_type;
  made.attributes = std::move(attributes);
  made.inputs = std::move(inputs);
  made.outputs = outputs;
  ops_[index(id)].op = std::move(made);
  link(id);
}

void Graph::set_inputs(OpId id, std::vector<TensorId> inputs) {
  unlink(id);
  ops_[index(id)].op.inputs = std::move(inputs);
  link(id);
}

void Graph::set_input(OpId id, std::size_t i, TensorId tensor) {
  std::vector<TensorId> inputs = op(id).inputs;
  inputs[i] = tensor;
  set_inputs(id, std::move(inputs));
}

void Graph::set_outputs(OpId id, std::vector<TensorId> outputs) {
  unlink(id);
  ops_[index(id)].op.outputs = std::move(outputs);
  link(id);
}

void Graph::set_attribute(OpId id, std::string_view name, ir::AttributeValue value) {
  ops_[index(id)].op.attributes.set(name, std::move(value));
}

void Graph::remove(OpId id) {
  unlink(id);
  ops_[index(id)].alive = false;
}

TensorId Graph::replace(TensorId from, TensorId to) {
  if (from == to) return to;
  const auto redirect = [this](TensorId old, TensorId fresh) {
    const std::vector<OpId> users = users_[index(old)];
    for (const OpId user : users) {
      std::vector<TensorId> inputs = op(user).inputs;
      std::replace(inputs.begin(), inputs.end(), old, fresh);
      set_inputs(user, std::move(inputs));
    }
    lost_use(old);
  };
  if (!is_graph_output(from)) {
    redirect(from, to);
    return to;
  }
  const OpId source = producer(to), old_source = producer(from);
  if (source == kNone || is_graph_output(to) || source == old_source) return kNone;
  if (old_source != kNone) {  // computes something nobody reads from now on
    std::vector<TensorId> outputs = op(old_source).outputs;
    std::replace(outputs.begin(), outputs.end(), from, add_like(from, shape(from)));
    set_outputs(old_source, outputs);
    for (const TensorId output : outputs) lost_use(output);
  }
  std::vector<TensorId> outputs = op(source).outputs;
  std::replace(outputs.begin(), outputs.end(), to, from);
  set_outputs(source, std::move(outputs));
  redirect(to, from);
  return from;
}

void Graph::give_buffer(TensorId tensor, std::int32_t buffer) {
  buffer_uses_.resize(model_->buffers.size(), 0);
  ++buffer_uses_[index(buffer)];
  change_tensor(tensor).buffer = buffer;
}

void Graph::release(TensorId id) {
  const std::int32_t buffer = tensor(id).buffer;
  if (buffer == 0 || !users(id).empty() || is_graph_output(id) || is_graph_input(id)) return;
  change_tensor(id).buffer = 0;
  if (--buffer_uses_[index(buffer)] == 0) model_->buffers[index(buffer)] = ir::Buffer();
}

void Graph::sweep() {
  while (!perhaps_dead_.empty()) {
    const TensorId candidate = perhaps_dead_.back();
    perhaps_dead_.pop_back();
    const OpId id = producer(candidate);
    if (id == kNone) release(candidate);
    if (id == kNone || !is_alive(id) || ops_[index(id)].has_effect) continue;
    const bool is_read = std::any_of(op(id).outputs.begin(), op(id).outputs.end(), [&](TensorId output) {
      return output >= 0 && (is_graph_output(output) || !users(output).empty());
    });
    if (!is_read) remove(id);
  }
}

}  // namespace reef::simplify
