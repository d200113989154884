// SPDX-License-Identifier: Apache-2.0
#include "graph/op_list.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "formats/tflite/operator_codes.h"

namespace reef::graph {
namespace {

ir::Attributes with_activation() {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  return attributes;
}

}  // namespace

ir::Quantization quantization_of(const Affine8& affine) {
  ir::Quantization result;
  result.scale = {affine.scale};
  result.zero_point = {affine.zero_point};
  return result;
}

Affine8 unit_affine(ir::DataType type) { return {type, 1.0f / 256, type == ir::DataType::kInt8 ? -128 : 0}; }
Affine8 tanh_affine(ir::DataType type) { return {type, 1.0f / 128, type == ir::DataType::kInt8 ? 0 : 128}; }

std::string OpList::next_name() { return fmt::format("{}/reef_{}", name_, ++made_); }

std::int32_t OpList::tensor(ir::DataType type, ir::Shape shape, const ir::Quantization& quantization) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = type;
  tensor.shape = shape;
  tensor.quantization = quantization;
  tensor.has_quantization = quantization.is_quantized();
  return graph_.add_tensor(std::move(tensor));
}

std::int32_t OpList::tensor_like(std::int32_t like, ir::Shape shape) {
  const ir::DataType type = graph_.tensor(like).type;
  ir::Quantization quantization = graph_.tensor(like).quantization;
  return tensor(type, shape, quantization);
}

std::int32_t OpList::int_matrix(std::span<const std::int64_t> values, std::int32_t columns) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = ir::DataType::kInt32;
  const auto count = static_cast<std::int32_t>(values.size());
  tensor.shape = columns > 0 ? ir::Shape({count / columns, columns}) : ir::Shape({count});
  return graph_.add_constant(std::move(tensor), bytes_of(std::vector<std::int32_t>(values.begin(), values.end())));
}
std::int32_t OpList::int_vector(std::span<const std::int64_t> values) { return int_matrix(values, 0); }

std::int32_t OpList::int_scalar(std::int32_t value) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = ir::DataType::kInt32;
  return graph_.add_constant(std::move(tensor), bytes_of(std::vector<std::int32_t>{value}));
}

std::int32_t OpList::filled(ir::Shape shape, const Affine8& affine, std::int32_t q) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = affine.type;
  tensor.shape = shape;
  tensor.quantization = quantization_of(affine);
  tensor.has_quantization = true;
  return graph_.add_constant(std::move(tensor), std::vector<std::uint8_t>(static_cast<std::size_t>(shape.elements()),
                                                                          static_cast<std::uint8_t>(q)));
}

void OpList::add(OpName type, std::string_view options_type, ir::Attributes attributes,
                 std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs, ir::DataType operands) {
  ops_.push_back(tflite::builtin_operator(type, options_type, std::move(attributes), std::move(inputs),
                                          std::move(outputs), operands));
}

std::int32_t OpList::reshape(std::int32_t x, ir::Shape shape, std::int32_t into) {
  const std::int32_t y = into == kNew ? tensor_like(x, shape) : into;
  const std::vector<std::int64_t> dims(shape.begin(), shape.end());
  const std::int32_t target = int_vector(dims);
  ir::Attributes attributes;
  attributes.set("new_shape", dims);
  add(Op::RESHAPE, "ReshapeOptions", std::move(attributes), {x, target}, {y}, graph_.tensor(x).type);
  return y;
}

std::int32_t OpList::transpose(std::int32_t x, std::span<const int> permutation, std::int32_t into) {
  std::vector<std::int32_t> dims;
  for (const int source : permutation) dims.push_back(graph_.shape(x)[source]);
  const std::int32_t y = into == kNew ? tensor_like(x, ir::Shape(dims)) : into;
  const std::vector<std::int64_t> values(permutation.begin(), permutation.end());
  const std::int32_t order = int_vector(values);
  add(Op::TRANSPOSE, "TransposeOptions", {}, {x, order}, {y}, graph_.tensor(x).type);
  return y;
}

std::int32_t OpList::concatenation(std::span<const std::int32_t> parts, int axis, std::int32_t into) {
  ir::Shape shape = graph_.shape(parts[0]);
  shape[axis] = 0;
  for (const std::int32_t part : parts) shape[axis] += graph_.shape(part)[axis];
  const std::int32_t y = into == kNew ? tensor_like(parts[0], shape) : into;
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{axis});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  add(Op::CONCATENATION, "ConcatenationOptions", std::move(attributes), {parts.begin(), parts.end()}, {y},
      graph_.tensor(y).type);
  return y;
}

std::int32_t OpList::slice_box(std::int32_t x, std::span<const std::int64_t> begins, ir::Shape sizes,
                               std::int32_t into) {
  std::vector<std::int64_t> ends(begins.begin(), begins.end());
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] += sizes[static_cast<int>(i)];
  const std::vector<std::int64_t> strides(ends.size(), 1);
  const std::int32_t y = into == kNew ? tensor_like(x, sizes) : into;
  ir::Attributes attributes;
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attributes.set(mask, std::int64_t{0});
  }
  attributes.set("offset", false);
  const std::int32_t from = int_vector(begins), to = int_vector(ends), steps = int_vector(strides);
  add(Op::STRIDED_SLICE, "StridedSliceOptions", std::move(attributes), {x, from, to, steps}, {y},
      graph_.tensor(x).type);
  return y;
}

std::int32_t OpList::slice(std::int32_t x, int axis, std::int32_t begin, std::int32_t size, std::int32_t into) {
  ir::Shape sizes = graph_.shape(x);
  std::vector<std::int64_t> begins(static_cast<std::size_t>(sizes.rank()), 0);
  begins[at(axis)] = begin;
  sizes[axis] = size;
  return slice_box(x, begins, sizes, into);
}

std::vector<std::int32_t> OpList::split(std::int32_t x, int axis, int pieces, std::span<const std::int32_t> into) {
  ir::Shape shape = graph_.shape(x);
  shape[axis] /= pieces;
  std::vector<std::int32_t> outputs(into.begin(), into.end());
  while (outputs.size() < static_cast<std::size_t>(pieces)) outputs.push_back(tensor_like(x, shape));
  ir::Attributes attributes;
  attributes.set("num_splits", std::int64_t{pieces});
  const std::int32_t dimension = int_scalar(axis);
  add(Op::SPLIT, "SplitOptions", std::move(attributes), {dimension, x}, outputs, graph_.tensor(x).type);
  return outputs;
}

std::int32_t OpList::tile(std::int32_t x, std::span<const std::int64_t> multiples, std::int32_t into) {
  ir::Shape shape = graph_.shape(x);
  for (int i = 0; i < shape.rank(); ++i) {
    shape[i] = static_cast<std::int32_t>(shape[i] * multiples[at(i)]);
  }
  const std::int32_t y = into == kNew ? tensor_like(x, shape) : into;
  const std::int32_t times = int_vector(multiples);
  add(Op::TILE, "TileOptions", {}, {x, times}, {y}, graph_.tensor(x).type);
  return y;
}

std::int32_t OpList::binary(OpName type, std::int32_t a, std::int32_t b, const Affine8& result, std::int32_t into) {
  ir::Shape shape = graph_.shape(a);
  if (graph_.shape(b).elements() > shape.elements()) shape = graph_.shape(b);
  const std::int32_t y = into == kNew ? tensor(shape, result) : into;
  const bool chooses = type == Op::MAXIMUM || type == Op::MINIMUM;
  const std::string_view options = type == Op::ADD   ? "AddOptions"
                                   : type == Op::SUB ? "SubOptions"
                                   : chooses         ? "MaximumMinimumOptions"
                                                     : "MulOptions";
  ir::Attributes attributes = chooses ? ir::Attributes() : with_activation();
  if (type == Op::ADD || type == Op::SUB) attributes.set("pot_scale_int16", true);
  add(type, options, std::move(attributes), {a, b}, {y}, result.type);
  // Products that grow were refused by the first kernels.
  const auto sa = graph_.affine(a), sb = graph_.affine(b);
  if (type == Op::MUL && sa && sb && sa->scale * sb->scale / result.scale >= 1.0f) ops_.back().version = 3;
  return y;
}

std::int32_t OpList::unary(OpName type, std::int32_t x, const Affine8& result, std::int32_t into) {
  const std::int32_t y = into == kNew ? tensor(graph_.shape(x), result) : into;
  add(type, type == Op::QUANTIZE ? "QuantizeOptions" : "", {}, {x}, {y}, result.type);
  return y;
}

}  // namespace reef::graph
