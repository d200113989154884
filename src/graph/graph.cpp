// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/tflite/operator_codes.h"
#include "ir/describe.h"
#include "ops/registry.h"

namespace reef::graph {
namespace {

template <typename To, typename From>
std::vector<To> values_of(const Bytes& bytes) {
  std::vector<From> values(bytes.size() / sizeof(From));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(From));
  return std::vector<To>(values.begin(), values.end());
}

constexpr int kMostAxes = 8;  // no runtime takes more

}  // namespace

Graph::Graph(ir::Model& model, std::size_t subgraph, Evaluate evaluate)
    : model_(&model), subgraph_(subgraph), evaluate_(std::move(evaluate)) {
  buffer_uses_.assign(model.buffers.size(), 0);
  for (const ir::Subgraph& each : model.subgraphs) {
    for (const ir::Tensor& tensor : each.tensors) ++buffer_uses_[index(tensor.buffer)];
  }
  for (const ir::Metadata& metadata : model.metadata) ++buffer_uses_[index(metadata.buffer)];
  for (const std::int32_t buffer : model.metadata_buffers) {
    if (buffer >= 0 && index(buffer) < buffer_uses_.size()) ++buffer_uses_[index(buffer)];
  }
  given_tensors_ = graph().tensors.size();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph().operators.size()); ++i) {
    slots_.push_back({true, has_effect(op(i)), i, i});
  }
  index_tensors();
  index_operators();
  for (OpId i = 0; i < op_slots(); ++i) {
    for (const TensorId input : op(i).inputs) {
      if (input >= 0 && producer(input) >= i) is_ordered_ = false;
    }
  }
}

void Graph::index_tensors() {
  is_input_.assign(graph().tensors.size(), false);
  is_output_.assign(graph().tensors.size(), false);
  for (const std::int32_t input : graph().inputs) is_input_[index(input)] = true;
  for (const std::int32_t output : graph().outputs) is_output_[index(output)] = true;
  for (const ir::Signature& signature : model_->signatures) {
    if (index(signature.subgraph) != subgraph_) continue;
    for (const ir::SignatureTensor& each : signature.outputs) is_output_[index(each.tensor)] = true;
  }
}

// All operators must be alive. Any of them may turn out to have no reader.
void Graph::index_operators() {
  producers_.assign(graph().tensors.size(), kNone);
  users_.assign(graph().tensors.size(), {});
  for (OpId id = 0; id < op_slots(); ++id) {
    link(id);
    for (const TensorId output : op(id).outputs) {
      if (output >= 0) lost_use(output);
    }
  }
}

bool Graph::has_effect(const ir::Operator& op) const {
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || op.outputs.empty()) return true;
  if (op.type == Op::WHILE || op.type == Op::IF || op.type == Op::CALL_ONCE || !op.intermediates.empty()) return true;
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

std::vector<OpId> Graph::consumers(TensorId id) const {
  std::vector<OpId> result = users(id);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool Graph::is_static(TensorId id) const {
  const std::vector<std::int32_t>& signature = tensor(id).shape_signature;
  return std::none_of(signature.begin(), signature.end(), [](std::int32_t dim) { return dim < 0; });
}

std::string Graph::describe(OpId id) const { return ir::describe_op(graph(), id, origin(id)); }

bool Graph::is_sound(OpId id) const {
  const ir::Operator& it = op(id);
  if (!is_alive(id) || slots_[index(id)].has_effect || it.opaque_options || it.opaque_options_2) return false;
  const ops::OpDef* definition = ops::find_op(it);
  if (definition == nullptr || !ops::check_arity(*definition, it).ok()) return false;
  const auto is_plain = [this](TensorId tensor_id) {
    const ir::Tensor& plain = tensor(tensor_id);
    return is_static(tensor_id) && !plain.is_variable && !plain.sparsity && plain.external_buffer == 0 &&
           plain.shape.elements() > 0 && plain.shape.rank() <= kMostAxes;
  };
  const std::string& type = it.type;
  const bool takes_bias =
      type == Op::CONV_2D || type == Op::DEPTHWISE_CONV_2D || type == Op::FULLY_CONNECTED || type == Op::TRANSPOSE_CONV;
  for (std::size_t i = 0; i < it.inputs.size(); ++i) {
    const TensorId input = it.inputs[i];
    if (input < 0 ? !(takes_bias && i >= 2) : !is_plain(input)) return false;
  }
  return !it.inputs.empty() && std::all_of(it.outputs.begin(), it.outputs.end(),
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

std::optional<Affine8> Graph::affine(TensorId id) const {
  const ir::Tensor& it = tensor(id);
  const ir::Quantization& quantization = it.quantization;
  if (!ir::is_integer_8(it.type) || quantization.scale.size() != 1 || quantization.zero_point.size() > 1) return {};
  if (!std::holds_alternative<std::monostate>(quantization.details)) return {};
  Affine8 result{it.type, quantization.scale[0], 0};
  const std::int64_t zero_point = quantization.zero_point.empty() ? 0 : quantization.zero_point[0];
  if (!std::isnormal(result.scale) || result.scale <= 0) return {};
  if (zero_point < result.lowest() || zero_point > result.highest()) return {};
  result.zero_point = static_cast<std::int32_t>(zero_point);
  return result;
}

bool Graph::same_quantization(TensorId a, TensorId b) const {
  if (tensor(a).type != tensor(b).type) return false;
  if (!tensor(a).quantization.is_quantized() && !tensor(b).quantization.is_quantized()) return true;
  const std::optional<Affine8> first = affine(a), second = affine(b);
  return first && second && *first == *second;
}

TensorId Graph::add_tensor(ir::Tensor tensor) {
  if (tensor.buffer != 0) {  // it shares the bytes of another one
    buffer_uses_.resize(model_->buffers.size(), 0);
    ++buffer_uses_[index(tensor.buffer)];
  }
  change().tensors.push_back(std::move(tensor));
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
  tensor.buffer = 0;
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

void Graph::set_constant(TensorId id, std::vector<std::uint8_t> data) {
  ir::Buffer buffer;
  buffer.is_empty_constant = data.empty();
  buffer.data = Bytes(std::move(data));
  model_->buffers.push_back(std::move(buffer));
  give_buffer(id, static_cast<std::int32_t>(model_->buffers.size()) - 1);
}

OpId Graph::append(ir::Operator op, std::int64_t position, std::int32_t origin) {
  change().operators.push_back(std::move(op));
  slots_.push_back({true, false, position, origin});
  link(op_slots() - 1);
  return op_slots() - 1;
}

OpId Graph::add_op(OpId near, OpName type, std::string_view options_type, ir::Attributes attributes,
                   std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
  const ir::DataType operands = tensor(outputs[0]).type;
  return append(tflite::builtin_operator(type, options_type, std::move(attributes), std::move(inputs),
                                         std::move(outputs), operands),
                slots_[index(near)].position, origin(near));
}

void Graph::become(OpId id, OpName type, std::string_view options_type, ir::Attributes attributes,
                   std::vector<TensorId> inputs) {
  const std::vector<TensorId> outputs = op(id).outputs;
  unlink(id);
  change().operators[index(id)] = tflite::builtin_operator(type, options_type, std::move(attributes), std::move(inputs),
                                                           outputs, tensor(outputs[0]).type);
  link(id);
}

OpId Graph::substitute(OpId id, std::vector<ir::Operator> with) {
  const std::int64_t position = slots_[index(id)].position;
  const std::int32_t origin = this->origin(id);
  remove(id);
  if (with.size() > 1) {
    const auto more = static_cast<std::int64_t>(with.size()) - 1;
    for (Slot& slot : slots_) slot.position += slot.position > position ? more : 0;
  }
  const OpId first = op_slots();
  for (ir::Operator& each : with) {
    const OpId made = append(std::move(each), position + op_slots() - first, origin);
    for (const TensorId output : op(made).outputs) {
      if (output >= 0) lost_use(output);  // it may never have a reader
    }
  }
  return first;
}

void Graph::set_operators(std::vector<ir::Operator> operators, const std::vector<std::int32_t>& origins) {
  change().operators = std::move(operators);
  slots_.clear();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(origins.size()); ++i) {
    slots_.push_back({true, has_effect(op(i)), i, origins[index(i)]});
  }
  index_operators();
}

void Graph::set_inputs(OpId id, std::vector<TensorId> inputs) {
  unlink(id);
  change().operators[index(id)].inputs = std::move(inputs);
  link(id);
}

void Graph::set_input(OpId id, std::size_t i, TensorId tensor) {
  std::vector<TensorId> inputs = op(id).inputs;
  inputs[i] = tensor;
  set_inputs(id, std::move(inputs));
}

void Graph::set_outputs(OpId id, std::vector<TensorId> outputs) {
  unlink(id);
  change().operators[index(id)].outputs = std::move(outputs);
  link(id);
}

void Graph::set_attribute(OpId id, std::string_view name, ir::AttributeValue value) {
  change().operators[index(id)].attributes.set(name, std::move(value));
}

void Graph::remove(OpId id) {
  unlink(id);
  slots_[index(id)].alive = false;
}

void Graph::redirect_users(TensorId from, TensorId to) {
  const std::vector<OpId> users = users_[index(from)];
  for (const OpId user : users) {
    std::vector<TensorId> inputs = op(user).inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    set_inputs(user, std::move(inputs));
  }
  lost_use(from);
}

TensorId Graph::replace(TensorId from, TensorId to) {
  if (from == to) return to;
  if (!is_graph_output(from)) {
    redirect_users(from, to);
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
  redirect_users(to, from);
  return from;
}

void Graph::redirect(TensorId from, TensorId to) {
  if (from == to) return;
  redirect_users(from, to);
  std::replace(change().outputs.begin(), change().outputs.end(), from, to);
  for (ir::Signature& signature : model_->signatures) {
    if (index(signature.subgraph) != subgraph_) continue;
    for (ir::SignatureTensor& output : signature.outputs) output.tensor = output.tensor == from ? to : output.tensor;
  }
  index_tensors();
}

void Graph::set_graph_input(std::size_t place, TensorId to) {
  const TensorId from = graph().inputs[place];
  change().inputs[place] = to;
  for (ir::Signature& signature : model_->signatures) {
    if (index(signature.subgraph) != subgraph_) continue;
    for (ir::SignatureTensor& input : signature.inputs) input.tensor = input.tensor == from ? to : input.tensor;
  }
  index_tensors();
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
    if (id == kNone || !is_alive(id) || slots_[index(id)].has_effect) continue;
    const bool is_read = std::any_of(op(id).outputs.begin(), op(id).outputs.end(), [&](TensorId output) {
      return output >= 0 && (is_graph_output(output) || !users(output).empty());
    });
    if (!is_read) remove(id);
  }
}

}  // namespace reef::graph
