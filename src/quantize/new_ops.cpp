// SPDX-License-Identifier: Apache-2.0
#include "quantize/new_ops.h"

#include "formats/tflite/operator_codes.h"

namespace reef::quantize {

std::int32_t NewOps::tensor(std::string name, ir::Shape shape, ir::DataType type,
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

ir::Operator& NewOps::op(std::string_view type, std::string_view options, std::vector<std::int32_t> inputs,
                         std::int32_t output) {
  ir::Operator op;
  op.type = type;
  op.builtin_code = tflite::builtin_code(type);
  op.options_type = options;
  op.inputs = std::move(inputs);
  op.outputs = {output};
  graph().operators.push_back(std::move(op));
  return graph().operators.back();
}

void NewOps::reshape(std::int32_t from, std::int32_t to, std::string name) {
  const ir::Shape shape = graph().tensors[static_cast<std::size_t>(to)].shape;
  std::vector<std::int32_t> numbers;
  std::vector<std::int64_t> wide;
  for (int i = 0; i < shape.rank(); ++i) {
    numbers.push_back(shape[i]);
    wide.push_back(shape[i]);
  }
  const std::int32_t sizes = constant(std::move(name), ir::Shape({shape.rank()}), ir::DataType::kInt32, numbers);
  op("RESHAPE", "ReshapeOptions", {from, sizes}, to).attributes.set("new_shape", wide);
}

void NewOps::pad(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& amounts, std::string name) {
  const auto rank = static_cast<std::int32_t>(amounts.size() / 2);
  const std::int32_t list = constant(std::move(name), ir::Shape({rank, 2}), ir::DataType::kInt32, amounts);
  const bool is_8_bit = graph().tensors[static_cast<std::size_t>(from)].type == ir::DataType::kInt8;
  op("PAD", "PadOptions", {from, list}, to).version = is_8_bit ? 2 : 1;
}

void NewOps::drop_first(std::int32_t from, std::int32_t to, std::string name) {
  const ir::Tensor whole = graph().tensors[static_cast<std::size_t>(from)];
  const ir::Shape shape = graph().tensors[static_cast<std::size_t>(to)].shape;
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<std::int32_t> begins(rank, 0), sizes;
  begins[0] = whole.shape[0] - shape[0];
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  const std::int32_t begin = constant(name + "_begin", ir::Shape({shape.rank()}), ir::DataType::kInt32, begins);
  const std::int32_t size = constant(name + "_size", ir::Shape({shape.rank()}), ir::DataType::kInt32, sizes);
  op("SLICE", "SliceOptions", {from, begin, size}, to).version = whole.type == ir::DataType::kInt8 ? 2 : 1;
}

void NewOps::set_pointwise(ir::Operator& op) {
  op.attributes.set("padding", ir::EnumName{"VALID"});
  for (const char* one : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    op.attributes.set(one, std::int64_t{1});
  }
}

}  // namespace reef::quantize
