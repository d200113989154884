// SPDX-License-Identifier: Apache-2.0
#include "graph/appender.h"

#include "formats/tflite/operator_codes.h"

namespace reef::graph {

std::int32_t Appender::add_tensor(std::string name, ir::Shape shape, ir::DataType type,
                                  const ir::Quantization& quantization) {
  ir::Tensor made;
  made.name = std::move(name);
  made.shape = std::move(shape);
  made.type = type;
  made.quantization = quantization;
  made.has_quantization = !quantization.scale.empty();
  graph().tensors.push_back(std::move(made));
  return static_cast<std::int32_t>(graph().tensors.size() - 1);
}

std::int32_t Appender::add_bytes(std::string name, ir::Shape shape, ir::DataType type, std::vector<std::uint8_t> bytes,
                                 const ir::Quantization& quantization) {
  const std::int32_t made = add_tensor(std::move(name), std::move(shape), type, quantization);
  graph().tensors.back().buffer = static_cast<std::int32_t>(model_.buffers.size());
  ir::Buffer& buffer = model_.buffers.emplace_back();
  buffer.is_empty_constant = bytes.empty();
  buffer.data = Bytes(std::move(bytes));
  return made;
}

std::int32_t Appender::add_ints(std::string name, const std::vector<std::int32_t>& values) {
  return add_constant(std::move(name), ir::Shape({static_cast<std::int32_t>(values.size())}), ir::DataType::kInt32,
                      values);
}

ir::Operator& Appender::op(OpName type, std::string_view options, std::vector<std::int32_t> inputs,
                           std::int32_t output) {
  graph().operators.push_back(
      tflite::builtin_operator(type, options, {}, std::move(inputs), {output}, ir::DataType::kFloat32));
  return graph().operators.back();
}

void Appender::reshape(std::int32_t from, std::int32_t to, std::string name) {
  const ir::Shape shape = tensor(to).shape;
  const std::int32_t sizes = add_ints(std::move(name), shape.dims());
  op(Op::RESHAPE, "ReshapeOptions", {from, sizes}, to)
      .attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
}

void Appender::pad(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& amounts, std::string name) {
  const auto rank = static_cast<std::int32_t>(amounts.size() / 2);
  const std::int32_t list = add_constant(std::move(name), ir::Shape({rank, 2}), ir::DataType::kInt32, amounts);
  op(Op::PAD, "PadOptions", {from, list}, to).version = tflite::operator_version(Op::PAD, tensor(from).type);
}

void Appender::drop_first(std::int32_t from, std::int32_t to, const std::string& name) {
  const ir::Shape shape = tensor(to).shape;
  std::vector<std::int32_t> begins(static_cast<std::size_t>(shape.rank()), 0);
  begins[0] = tensor(from).shape[0] - shape[0];
  const std::int32_t begin = add_ints(name + "_begin", begins), size = add_ints(name + "_size", shape.dims());
  op(Op::SLICE, "SliceOptions", {from, begin, size}, to).version =
      tflite::operator_version(Op::SLICE, tensor(from).type);
}

void Appender::concatenation(std::vector<std::int32_t> parts, int axis, std::int32_t to) {
  ir::Operator& made = op(Op::CONCATENATION, "ConcatenationOptions", std::move(parts), to);
  made.attributes.set("axis", std::int64_t{axis});
  made.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
}

void Appender::set_pointwise(ir::Operator& op) {
  op.attributes.set("padding", ir::EnumName{"VALID"});
  for (const char* one : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    op.attributes.set(one, std::int64_t{1});
  }
}

}  // namespace reef::graph
