// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/vocabulary.h"

#include <algorithm>

namespace reef::import {
namespace {

std::vector<int> channels_last_order(int rank) {
  std::vector<int> order = {0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

std::vector<int> channels_first_order(int rank) {
  std::vector<int> order = {0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) order.push_back(i);
  return order;
}

// A constant behind DEQUANTIZE: moved before it, so that it stays an integer constant. kAbsent: x is none.
Id quantized_constant(const GraphBuilder& b, Id x) {
  const std::int32_t producer = b.producer(x);
  if (producer < 0 || b.op(producer).type != Op::DEQUANTIZE) return kAbsent;
  const Id source{b.op(producer).inputs[0]};
  return b.is_known(source) ? source : kAbsent;
}

Id dequantized(GraphBuilder& b, Id x, ir::Quantization quantization) {
  b.set_quantization(x, std::move(quantization));
  return b.emit_kept(Op::DEQUANTIZE, x, ir::DataType::kFloat32);
}

Id plain_transpose(GraphBuilder& b, Id x, const std::vector<int>& permutation) {
  return b.emit(Op::TRANSPOSE, {x, b.ints(Dims(permutation.begin(), permutation.end()))}, b.type(x));
}

}  // namespace

ir::Shape shape_from(const Dims& dims) { return ir::Shape(std::vector<std::int32_t>(dims.begin(), dims.end())); }
Dims dims_of(const ir::Shape& shape) { return Dims(shape.begin(), shape.end()); }

Id reshape(GraphBuilder& b, Id x, const Dims& shape) {
  if (b.is_shape_known(x) && dims_of(b.shape(x)) == shape) return x;
  ir::Attributes attributes;
  attributes.set("new_shape", shape);
  return b.emit(Op::RESHAPE, {x, b.ints(shape)}, b.type(x), std::move(attributes));
}

Id transpose(GraphBuilder& b, Id x, const std::vector<int>& permutation) {
  bool is_identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    is_identity = is_identity && permutation[i] == static_cast<int>(i);
  if (is_identity) return x;
  const Id source = quantized_constant(b, x);
  if (source == kAbsent) return plain_transpose(b, x, permutation);
  ir::Quantization quantization = b.tensor(source).quantization;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != b.tensor(source).quantization.dimension) continue;
    quantization.dimension = static_cast<std::int32_t>(i);
  }
  return dequantized(b, plain_transpose(b, source, permutation), std::move(quantization));
}

Id concat(GraphBuilder& b, const std::vector<Id>& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{axis});
  return b.emit(Op::CONCATENATION, parts, b.type(parts.empty() ? kAbsent : parts[0]), std::move(attributes));
}

Id slice(GraphBuilder& b, Id x, const Dims& begins, const Dims& sizes) {
  if (dims_of(b.shape(x)) == sizes) return x;
  return b.emit(Op::SLICE, {x, b.ints(begins), b.ints(sizes)}, b.type(x));
}

Id slice_axis(GraphBuilder& b, Id x, int axis, std::int64_t begin, std::int64_t size) {
  Dims begins(static_cast<std::size_t>(b.rank(x)), 0), sizes = dims_of(b.shape(x));
  begins[at(axis)] = begin;
  sizes[at(axis)] = size;
  return slice(b, x, begins, sizes);
}

Id strided_slice(GraphBuilder& b, Id x, const Dims& begins, const Dims& ends, const Dims& strides) {
  std::int64_t end_mask = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (strides[i] < 0 && ends[i] == -1) end_mask |= std::int64_t{1} << i;
  }
  ir::Attributes attributes;
  attributes.set("begin_mask", std::int64_t{0});
  attributes.set("end_mask", end_mask);
  for (const char* mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) attributes.set(mask, std::int64_t{0});
  attributes.set("offset", false);
  return b.emit(Op::STRIDED_SLICE, {x, b.ints(begins), b.ints(ends), b.ints(strides)}, b.type(x),
                std::move(attributes));
}

Id pad_constant(GraphBuilder& b, Id x, const Dims& before, const Dims& after, double value) {
  Dims amounts;
  bool is_any = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    amounts.push_back(before[i]);
    amounts.push_back(after[i]);
    is_any = is_any || before[i] != 0 || after[i] != 0;
  }
  if (!is_any) return x;
  const Id pads = b.ints(amounts, {static_cast<std::int32_t>(before.size()), 2});
  if (value == 0) return b.emit(Op::PAD, {x, pads}, b.type(x));
  return b.emit(Op::PADV2, {x, pads, b.scalar(b.type(x), value)}, b.type(x));
}

Id tile(GraphBuilder& b, Id x, const Dims& times) {
  for (const std::int64_t each : times) {
    if (each != 1) return b.emit(Op::TILE, {x, b.ints(times)}, b.type(x));
  }
  return x;
}

Id broadcast_to(GraphBuilder& b, Id x, const Dims& shape) {
  if (dims_of(b.shape(x)) == shape) return x;
  return b.emit(Op::BROADCAST_TO, {x, b.ints(shape)}, b.type(x));
}

Id gather(GraphBuilder& b, Id x, Id indices, int axis) {
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{axis});
  attributes.set("batch_dims", std::int64_t{0});
  return b.emit(Op::GATHER, {x, indices}, b.type(x), std::move(attributes));
}

Id gather_nd(GraphBuilder& b, Id x, Id indices) { return b.emit(Op::GATHER_ND, {x, indices}, b.type(x)); }

Id scatter_nd(GraphBuilder& b, Id indices, Id updates, const Dims& shape) {
  return b.emit(Op::SCATTER_ND, {indices, updates, b.ints(shape)}, b.type(updates));
}

Id stack(GraphBuilder& b, const std::vector<Id>& parts, int axis) {
  ir::Attributes attributes;
  attributes.set("values_count", static_cast<std::int64_t>(parts.size()));
  attributes.set("axis", std::int64_t{axis});
  return b.emit(Op::PACK, parts, b.type(parts.empty() ? kAbsent : parts[0]), std::move(attributes));
}

std::vector<Id> split_even(GraphBuilder& b, Id x, int axis, int pieces) {
  if (pieces == 1) return {x};
  ir::Attributes attributes;
  attributes.set("num_splits", std::int64_t{pieces});
  return b.emit_many(Op::SPLIT, {b.scalar(ir::DataType::kInt32, axis), x},
                     std::vector<ir::DataType>(static_cast<std::size_t>(pieces), b.type(x)), std::move(attributes));
}

Id reverse(GraphBuilder& b, Id x, int axis) { return b.emit(Op::REVERSE_V2, {x, b.ints(Dims{axis})}, b.type(x)); }

Id cast(GraphBuilder& b, Id x, ir::DataType type) {
  if (b.type(x) == type) return x;
  ir::Attributes attributes;
  const auto name = [](ir::DataType each) {
    std::string text = ir::type_name(each);
    for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return ir::EnumName{text};
  };
  attributes.set("in_data_type", name(b.type(x)));
  attributes.set("out_data_type", name(type));
  return b.emit(Op::CAST, {x}, type, std::move(attributes));
}

Id channels_last(GraphBuilder& b, Id x) { return transpose(b, x, channels_last_order(b.rank(x))); }
Id channels_first(GraphBuilder& b, Id x) { return transpose(b, x, channels_first_order(b.rank(x))); }

Id unary(GraphBuilder& b, OpName op, Id x) { return b.emit(op, {x}, b.type(x)); }
Id binary(GraphBuilder& b, OpName op, Id x, Id y) { return b.emit(op, {x, y}, b.type(x)); }
Id compare(GraphBuilder& b, OpName op, Id x, Id y) { return b.emit(op, {x, y}, ir::DataType::kBool); }

Id add(GraphBuilder& b, Id x, double y) { return add(b, x, b.scalar(b.type(x), y)); }
Id sub(GraphBuilder& b, Id x, double y) { return sub(b, x, b.scalar(b.type(x), y)); }
Id mul(GraphBuilder& b, Id x, double y) { return mul(b, x, b.scalar(b.type(x), y)); }
Id div(GraphBuilder& b, Id x, double y) { return div(b, x, b.scalar(b.type(x), y)); }
Id power(GraphBuilder& b, Id x, double y) { return binary(b, Op::POW, x, b.scalar(b.type(x), y)); }
Id subtract_from(GraphBuilder& b, double x, Id y) { return sub(b, b.scalar(b.type(y), x), y); }

Id select(GraphBuilder& b, Id condition, Id yes, Id no) {
  const Id chosen = b.emit(Op::SELECT_V2, {condition, yes, no}, b.type(yes));
  // Of single elements TFLite's kernel keeps the shape that the result had before, which is none.
  const int rank = std::max({b.rank(condition), b.rank(yes), b.rank(no)});
  const bool is_lost = b.status().ok() && b.is_shape_known(chosen) && b.rank(chosen) < rank;
  return is_lost ? reshape(b, chosen, Dims(static_cast<std::size_t>(rank), 1)) : chosen;
}

Id reduce(GraphBuilder& b, OpName op, Id x, const Dims& axes, bool keep_dims) {
  ir::Attributes attributes;
  attributes.set("keep_dims", keep_dims);
  return b.emit(op, {x, b.ints(axes)}, b.type(x), std::move(attributes));
}

Id matmul(GraphBuilder& b, Id x, Id y, bool transpose_y) {
  ir::Attributes attributes;
  attributes.set("adj_x", false);
  attributes.set("adj_y", transpose_y);
  attributes.set("asymmetric_quantize_inputs", false);
  return b.emit(Op::BATCH_MATMUL, {x, y}, b.type(x), std::move(attributes));
}

Id fully_connected(GraphBuilder& b, Id x, Id weights, Id bias) {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  attributes.set("keep_num_dims", b.rank(x) != 2);
  attributes.set("asymmetric_quantize_inputs", false);
  return b.emit(Op::FULLY_CONNECTED, {x, weights, bias}, b.type(x), std::move(attributes));
}

Id softmax_last(GraphBuilder& b, Id x) {
  ir::Attributes attributes;
  attributes.set("beta", 1.0);
  return b.emit(Op::SOFTMAX, {x}, b.type(x), std::move(attributes));
}

ir::DataType arithmetic_type(ir::DataType type) {
  switch (type) {
    case ir::DataType::kInt8:
    case ir::DataType::kUInt8:
    case ir::DataType::kInt16:
    case ir::DataType::kUInt16:
    case ir::DataType::kBool:
      return ir::DataType::kInt32;
    case ir::DataType::kUInt32:
      return ir::DataType::kInt64;
    default:
      return type;
  }
}

Id widened(GraphBuilder& b, Id x) { return cast(b, x, arithmetic_type(b.type(x))); }
bool is_float(ir::DataType type) { return type == ir::DataType::kFloat32; }

}  // namespace reef::import
