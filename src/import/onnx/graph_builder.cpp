// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "import/onnx/numbers.h"
#include "import/onnx/op_table.h"
#include "import/onnx/open_shapes.h"
#include "ops/registry.h"

namespace reef::import {
namespace {

// Results up to this many elements are computed when they are made.
constexpr std::int64_t kSmall = 1024;
// Operators of one import; unrolled loops of hostile files end here.
constexpr std::size_t kMostOperators = 2'000'000;

ops::Tensor bound(const ir::Model& model, const ir::Tensor& tensor) {
  ops::Tensor result;
  result.name = tensor.name;
  result.type = tensor.type;
  result.shape = tensor.shape;
  result.quantization = &tensor.quantization;
  const Bytes& data = ir::constant_data(model, tensor);
  result.is_constant = ir::is_constant(model, tensor);
  static std::uint64_t nothing = 0;
  const void* bytes = data.empty() ? static_cast<const void*>(&nothing) : data.data();
  // Ops see mutable memory because kernels write their outputs; inference writes nothing.
  if (result.is_constant) result.data = static_cast<std::byte*>(const_cast<void*>(bytes));
  result.bytes = data.size();
  return result;
}
}  // namespace

GraphBuilder::GraphBuilder() {
  model_.buffers.emplace_back();
  model_.subgraphs.emplace_back();
  graph().name = "main";
}

void GraphBuilder::set_scope(std::string name) {
  scope_ = std::move(name);
  made_in_scope_ = 0;
}

std::string GraphBuilder::next_name() { return fmt::format("{}/{}", scope_, ++made_in_scope_); }

void GraphBuilder::rename(Id id, std::string name) {
  if (id >= 0) graph().tensors[at(id)].name = std::move(name);
}

const ir::Tensor& GraphBuilder::tensor(Id id) const {
  static const ir::Tensor stand_in = [] {
    ir::Tensor tensor;
    tensor.shape = stand_in_shape();
    return tensor;
  }();
  return id < 0 ? stand_in : graph().tensors[at(id)];
}

std::int32_t GraphBuilder::dim(Id id, int axis) const {
  const ir::Shape& dims = shape(id);
  return axis >= 0 && axis < dims.rank() ? dims[axis] : 1;
}

bool GraphBuilder::is_shape_known(Id id) const { return id >= 0 && shaped_[at(id)] != 0; }
bool GraphBuilder::is_constant(Id id) const { return id >= 0 && ir::is_constant(model_, tensor(id)); }
bool GraphBuilder::is_known(Id id) const { return id >= 0 && known_[at(id)] != 0; }
std::int32_t GraphBuilder::producer(Id id) const { return id < 0 ? -1 : producers_[at(id)]; }

Id GraphBuilder::add_tensor(ir::Tensor tensor) {
  graph().tensors.push_back(std::move(tensor));
  producers_.push_back(-1);
  known_.push_back(0);
  shaped_.push_back(1);
  return static_cast<Id>(graph().tensors.size() - 1);
}

Id GraphBuilder::failed_value(ir::DataType type) {
  ir::Tensor tensor;
  tensor.type = type;
  tensor.shape = stand_in_shape();
  return add_tensor(std::move(tensor));
}

Id GraphBuilder::input(const std::string& name, ir::DataType type, ir::Shape shape, bool is_graph_input) {
  ir::Tensor tensor;
  tensor.name = name;
  tensor.type = type;
  tensor.shape = std::move(shape);
  const Id id = add_tensor(std::move(tensor));
  if (is_graph_input) graph().inputs.push_back(id);
  return id;
}

Id GraphBuilder::variable(ir::DataType type, ir::Shape shape) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.is_variable = true;
  return add_tensor(std::move(tensor));
}

Id GraphBuilder::constant(ir::DataType type, ir::Shape shape, Bytes data, std::string_view name) {
  const auto size = ir::byte_size(shape, type);
  if (!shape.is_usable() || !size || static_cast<std::size_t>(*size) != data.size()) {
    fail(internal_error("a constant of type {} and shape {} was made from {} bytes", ir::type_name(type),
                        shape.to_string(), data.size()));
    return failed_value(type);
  }
  ir::Buffer buffer;
  buffer.is_empty_constant = data.empty();
  buffer.data = std::move(data);
  model_.buffers.push_back(std::move(buffer));
  ir::Tensor tensor;
  tensor.name = name.empty() ? next_name() : std::string(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.buffer = static_cast<std::int32_t>(model_.buffers.size() - 1);
  const Id id = add_tensor(std::move(tensor));
  known_.back() = 1;
  return id;
}

Id GraphBuilder::borrowed_constant(ir::DataType type, ir::Shape shape, Bytes data, std::string_view name) {
  const Id id = constant(type, std::move(shape), std::move(data), name);
  borrowed_.insert(tensor(id).buffer);
  return id;
}

Id GraphBuilder::floats(std::span<const float> values, ir::Shape shape) {
  std::vector<std::uint8_t> bytes(values.size_bytes());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return constant(ir::DataType::kFloat32, std::move(shape), Bytes(std::move(bytes)));
}

Id GraphBuilder::ints(std::span<const std::int64_t> values) {
  return ints(values, {static_cast<std::int32_t>(values.size())});
}

Id GraphBuilder::ints(std::span<const std::int64_t> values, ir::Shape shape, ir::DataType type) {
  return constant(type, std::move(shape), Bytes(integer_bytes(values, type)));
}

Id GraphBuilder::scalar(ir::DataType type, double value) {
  return constant(type, {}, Bytes(number_bytes(type, value)));
}

Id GraphBuilder::filled(ir::DataType type, const ir::Shape& shape, double value) {
  const std::vector<std::uint8_t> one = number_bytes(type, value);
  const auto size = ir::byte_size(shape, type);
  if (!shape.is_usable() || !size || *size > kFoldLimit || one.empty()) {
    fail(Status(StatusCode::kResourceExhausted,
                fmt::format("a constant of shape {} would be needed, which is too large", shape.to_string())));
    return failed_value(type);
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*size));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = one[i % one.size()];
  return constant(type, shape, Bytes(std::move(bytes)));
}

void GraphBuilder::set_quantization(Id id, ir::Quantization quantization) {
  if (id < 0) return;
  ir::Tensor& target = graph().tensors[at(id)];
  target.has_quantization = quantization.is_quantized();
  target.quantization = std::move(quantization);
}

Status GraphBuilder::infer(const ir::Operator& op, std::vector<ir::Shape>& shapes, bool& is_deferred) {
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr) return unsupported("{} is not an operation of this version", op.type);
  REEF_RETURN_IF_ERROR(ops::check_arity(*definition, op));
  std::vector<ops::Tensor> tensors;
  tensors.reserve(op.inputs.size() + op.outputs.size());
  std::vector<ops::Tensor*> inputs, outputs;
  for (const std::int32_t index : op.inputs) {
    const Id id{index};
    if (id < 0) {
      inputs.push_back(nullptr);
      continue;
    }
    if (!is_shape_known(id)) is_deferred = true;
    tensors.push_back(bound(model_, tensor(id)));
    inputs.push_back(&tensors.back());
  }
  for (const std::int32_t id : op.outputs) {
    tensors.push_back(bound(model_, tensor(Id{id})));
    outputs.push_back(&tensors.back());
  }
  if (is_deferred) return ok_status();
  ops::InferContext context(op, inputs, outputs, nullptr);
  const Status status = definition->infer(context);
  if (status.code() == StatusCode::kDeferred) {
    is_deferred = true;
    return ok_status();
  }
  REEF_RETURN_IF_ERROR(status);
  for (const ops::Tensor* output : outputs) {
    REEF_REQUIRE(output->shape.is_usable(), "the result's shape {} is too large", output->shape.to_string());
    shapes.push_back(output->shape);
  }
  return ok_status();
}

std::vector<Id> GraphBuilder::emit_many(OpName type, std::vector<Id> inputs, std::vector<ir::DataType> types,
                                        ir::Attributes attributes) {
  std::vector<Id> results;
  if (!status_.ok() || graph().operators.size() >= kMostOperators) {
    if (status_.ok()) fail(Status(StatusCode::kResourceExhausted, "the model becomes too many operators"));
    for (const ir::DataType each : types) results.push_back(failed_value(each));
    return results;
  }
  const std::string name = next_name();
  for (std::size_t i = 0; i < types.size(); ++i) {
    ir::Tensor tensor;
    tensor.name = types.size() == 1 ? name : fmt::format("{}:{}", name, i);
    tensor.type = types[i];
    results.push_back(add_tensor(std::move(tensor)));
  }
  bool known = true;
  std::int64_t input_elements = 0;
  for (const Id id : inputs) {
    if (id < 0) continue;
    known = known && is_known(id);
    input_elements += elements(id);
  }
  ir::Operator op = new_operator(type, types.empty() ? ir::DataType::kFloat32 : types[0], std::move(attributes));
  op.inputs.assign(inputs.begin(), inputs.end());
  op.outputs.assign(results.begin(), results.end());
  std::vector<ir::Shape> shapes;
  bool is_deferred = false;
  const Status inferred = infer(op, shapes, is_deferred);
  if (!inferred.ok()) fail(inferred.in(type));
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto index = static_cast<std::size_t>(results[i]);
    producers_[index] = static_cast<std::int32_t>(graph().operators.size());
    known_[index] = known;
    shaped_[index] = !is_deferred && inferred.ok();
    graph().tensors[index].shape = shaped_[index] != 0 ? shapes[i] : stand_in_shape();
    if (is_deferred) graph().tensors[index].shape_signature = open_signature(model_, op, i);
    if (shaped_[index] != 0) largest = std::max(largest, shapes[i].elements());
  }
  graph().operators.push_back(std::move(op));
  kept_.push_back(0);
  const bool is_small = largest <= kSmall && input_elements <= 16 * kSmall;
  if (status_.ok() && known && (is_small || is_deferred)) {
    for (const Id id : results) {
      const Status evaluated = evaluate(id);
      if (!evaluated.ok()) fail(evaluated);
    }
  }
  return results;
}

Id GraphBuilder::emit(OpName type, std::vector<Id> inputs, ir::DataType result, ir::Attributes attributes) {
  return emit_many(type, std::move(inputs), {result}, std::move(attributes))[0];
}

Id GraphBuilder::emit_kept(OpName op, Id input, ir::DataType type, ir::Quantization quantization) {
  // Not known while it is made, so that it is not computed at once.
  const std::uint8_t was_known = input >= 0 ? known_[at(input)] : std::uint8_t{0};
  if (input >= 0) known_[at(input)] = 0;
  const Id result = emit(op, {input}, type);
  if (input >= 0) known_[at(input)] = was_known;
  known_[at(result)] = was_known;
  if (quantization.is_quantized()) set_quantization(result, std::move(quantization));
  if (const std::int32_t index = producer(result); index >= 0) kept_[at(index)] = 1;
  return result;
}

bool GraphBuilder::is_kept(Id id) const {
  const std::int32_t index = producer(id);
  return index >= 0 && kept_[at(index)] != 0;
}
std::optional<Bytes> GraphBuilder::value(Id id) {
  if (!is_known(id) || !status_.ok()) return std::nullopt;
  const Status evaluated = evaluate(id);
  if (!evaluated.ok()) {
    fail(evaluated);
    return std::nullopt;
  }
  if (const auto kept = kept_values_.find(id); kept != kept_values_.end()) return kept->second;
  return ir::constant_data(model_, tensor(id));
}

std::optional<std::vector<std::int64_t>> GraphBuilder::int_values(Id id) {
  const auto data = value(id);
  if (!data) return std::nullopt;
  return as_integers(type(id), *data);
}

std::optional<std::vector<float>> GraphBuilder::float_values(Id id) {
  const auto data = value(id);
  if (!data) return std::nullopt;
  return as_floats(type(id), *data);
}

}  // namespace reef::import
