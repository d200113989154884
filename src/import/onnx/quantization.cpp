// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear become QUANTIZE and DEQUANTIZE, with scale and zero point in the integer tensor
// as TFLite keeps them; src/quantize then makes integer operators of DEQUANTIZE - op - QUANTIZE. QLinear* are such
// sandwiches from the start. Integer constants stay integer constants behind a DEQUANTIZE that is not folded.
//
// Rounding: ONNX rounds halves to even, TFLite's QUANTIZE away from zero; they differ by one step at exact halves.
// Where parameters are not known before the model runs, the arithmetic is written out.
#include <algorithm>
#include <cmath>

#include "import/onnx/shared_parts.h"
#include "ops/registry.h"

namespace reef::import {
namespace {

struct Range {
  double low = 0, high = 0;
};

Range range_of(ir::DataType type) {
  switch (type) {
    case ir::DataType::kInt8:
      return {-128, 127};
    case ir::DataType::kUInt8:
      return {0, 255};
    case ir::DataType::kInt16:
      return {-32768, 32767};
    case ir::DataType::kUInt16:
      return {0, 65535};
    default:
      return {-2147483648.0, 2147483647.0};
  }
}

bool is_quantizable(ir::DataType type) {
  return type == ir::DataType::kInt8 || type == ir::DataType::kUInt8 || type == ir::DataType::kInt16;
}

// Parameters as TFLite keeps them; nullopt: not known, or of a form that it has not (blocks).
std::optional<ir::Quantization> parameters(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis) {
  const auto scales = b.float_values(scale);
  if (!scales || b.rank(scale) > 1) return std::nullopt;
  ir::Quantization q;
  q.scale = *scales;
  q.zero_point.assign(scales->size(), 0);
  if (zero_point != kAbsent) {
    const auto zeros = b.int_values(zero_point);
    if (!zeros || zeros->size() != scales->size()) return std::nullopt;
    q.zero_point = *zeros;
  }
  for (const float s : q.scale) {
    if (!(s > 0) || !std::isfinite(s)) return std::nullopt;
  }
  if (q.scale.size() > 1) {
    if (axis < 0 || axis >= b.rank(x) || b.dim(x, axis) != static_cast<std::int32_t>(q.scale.size())) {
      return std::nullopt;
    }
    q.dimension = axis;
  }
  return q;
}

// scale or zero point of one value per index of `axis`, with axes behind it.
Id aligned(GraphBuilder& b, Id values, int rank, int axis) {
  if (b.rank(values) != 1 || b.elements(values) == 1) return b.rank(values) == 1 ? reshape(b, values, {}) : values;
  if (axis < 0 || axis >= rank) {
    b.fail(invalid_input("there are {} scales or zero points, but no axis {} that they could go along",
                         b.elements(values), axis));
    return values;
  }
  Dims dims(static_cast<std::size_t>(rank), 1);
  dims[at(axis)] = b.elements(values);
  return reshape(b, values, dims);
}

// (x - zero point) * scale, written out.
Id dequantized_by_arithmetic(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis) {
  Id y = cast(b, x, ir::DataType::kFloat32);
  const int rank = b.rank(x);
  if (zero_point != kAbsent) {
    y = sub(b, y, cast(b, aligned(b, zero_point, rank, axis), ir::DataType::kFloat32));
  }
  return mul(b, y, aligned(b, scale, rank, axis));
}

// saturate(round(x / scale) + zero point), written out.
Id quantized_by_arithmetic(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis, ir::DataType type) {
  const int rank = b.rank(x);
  Id y = unary(b, Op::ROUND, div(b, x, aligned(b, scale, rank, axis)));
  if (zero_point != kAbsent) y = add(b, y, cast(b, aligned(b, zero_point, rank, axis), ir::DataType::kFloat32));
  const Range range = range_of(type);
  y = minimum(b, maximum(b, y, b.scalar(b.type(y), range.low)), b.scalar(b.type(y), range.high));
  return cast(b, y, type);
}

// Integers that nodes have only moved until now (a table that a Gather looks up, turned by a Transpose) have the scale
// that the first node names which reads them as numbers.
void give_scale(GraphBuilder& b, Id x, const ir::Quantization& q) {
  while (x >= 0 && !b.tensor(x).quantization.is_quantized() && is_quantizable(b.type(x))) {
    b.set_quantization(x, q);
    const std::int32_t producer = b.producer(x);
    if (producer < 0) return;
    const ir::Operator& op = b.model().subgraphs[0].operators[at(producer)];
    const bool moves = ops::form_of(op) == ops::Form::kMove || op.type == Op::GATHER;
    if (!moves || op.inputs.empty()) return;
    x = static_cast<Id>(op.inputs[0]);
  }
}

}  // namespace

Id dequantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis) {
  auto q = parameters(b, x, scale, zero_point, axis);
  if (!q || !is_quantizable(b.type(x)) || (b.type(x) == ir::DataType::kInt16 && q->zero_point[0] != 0)) {
    return dequantized_by_arithmetic(b, x, scale, zero_point, axis);
  }
  if (b.is_known(x)) {
    const auto data = b.value(x);
    if (!data) return x;
    x = b.constant(b.type(x), b.shape(x), *data, b.tensor(x).name + "/quantized");
  } else if (b.tensor(x).quantization.is_quantized() && !(b.tensor(x).quantization == *q)) {
    return dequantized_by_arithmetic(b, x, scale, zero_point, axis);
  } else if (q->is_per_axis()) {
    return dequantized_by_arithmetic(b, x, scale, zero_point, axis);
  }
  give_scale(b, x, *q);
  return b.emit_kept(Op::DEQUANTIZE, x, ir::DataType::kFloat32);
}

Id quantize(GraphBuilder& b, Id x, Id scale, Id zero_point, int axis, ir::DataType type) {
  auto q = parameters(b, x, scale, zero_point, axis);
  const bool is_plain = q && !q->is_per_axis() && is_quantizable(type);
  if (!is_plain || (type == ir::DataType::kInt16 && q->zero_point[0] != 0)) {
    return quantized_by_arithmetic(b, x, scale, zero_point, axis, type);
  }
  return b.emit_kept(Op::QUANTIZE, x, type, *std::move(q));
}

namespace {

// The axis that several scales go along; ONNX's default is 1.
Result<int> quantized_axis(NodeContext& ctx) {
  const int rank = ctx.b.rank(ctx.in(0));
  if (ctx.b.rank(ctx.in(1)) > 1 || ctx.int_attribute("block_size", 0) != 0) {
    return unsupported("attribute block_size: scales in blocks are not converted; quantize with one scale per channel");
  }
  if (ctx.b.elements(ctx.in(1)) == 1 || rank == 0) return 0;
  return ctx.axis(ctx.int_attribute("axis", 1), rank);
}

}  // namespace

Status convert_quantize_linear(NodeContext& ctx, GraphBuilder& b) {
  Value value;
  value.type = static_cast<onnx::ElementType>(ctx.int_attribute("output_dtype", 0));
  if (ctx.has(2)) value.type = ctx.value(2).type;
  if (value.type == onnx::ElementType::kUndefined) value.type = onnx::ElementType::kUInt8;
  const auto type = stored_type(value.type);
  if (!type || is_float(*type)) {
    return unsupported("attribute output_dtype: {} is not converted", onnx::element_type_name(value.type));
  }
  REEF_ASSIGN_OR_RETURN(const int axis, quantized_axis(ctx));
  const Id x = cast(b, ctx.in(0), ir::DataType::kFloat32);
  value.id = quantize(b, x, ctx.in(1), ctx.has(2) ? ctx.in(2) : kAbsent, axis, *type);
  return ctx.give(value);
}

Status convert_dequantize_linear(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const int axis, quantized_axis(ctx));
  return ctx.give(dequantize(b, ctx.in(0), ctx.in(1), ctx.has(2) ? ctx.in(2) : kAbsent, axis));
}

Status convert_dynamic_quantize_linear(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0), zero = b.scalar(ir::DataType::kFloat32, 0);
  Dims axes;
  for (int i = 0; i < b.rank(x); ++i) axes.push_back(i);
  const Id low = minimum(b, reduce(b, Op::REDUCE_MIN, x, axes, false), zero);
  const Id high = maximum(b, reduce(b, Op::REDUCE_MAX, x, axes, false), zero);
  const Id scale = div(b, sub(b, high, low), 255.0);
  const auto limited = [&](Id y) { return minimum(b, maximum(b, y, zero), b.scalar(ir::DataType::kFloat32, 255)); };
  const Id offset = unary(b, Op::ROUND, limited(subtract_from(b, 0.0, div(b, low, scale))));
  const Id y = limited(add(b, unary(b, Op::ROUND, div(b, x, scale)), offset));
  ctx.out(0, {cast(b, y, ir::DataType::kUInt8), onnx::ElementType::kUInt8, {}});
  ctx.out(1, {scale, onnx::ElementType::kFloat, {}});
  ctx.out(2, {cast(b, offset, ir::DataType::kUInt8), onnx::ElementType::kUInt8, {}});
  return ok_status();
}

Status convert_qlinear_conv(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(8));
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 1);
  const Id weights = dequantize(b, ctx.in(3), ctx.in(4), ctx.in(5), 0);
  Id bias = kAbsent;
  if (ctx.has(8)) {
    const Id scale = mul(b, reshape(b, ctx.in(1), {}), ctx.in(4));
    bias = mul(b, cast(b, ctx.in(8), ir::DataType::kFloat32), scale);
  }
  REEF_ASSIGN_OR_RETURN(const Id y, convolution(ctx, x, weights, bias));
  return ctx.give({quantize(b, y, ctx.in(6), ctx.in(7), 1, b.type(ctx.in(7))), ctx.value(7).type, {}});
}

Status convert_qlinear_matmul(NodeContext& ctx, GraphBuilder& b) {
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), b.rank(ctx.in(0)) - 2);
  const Id y = dequantize(b, ctx.in(3), ctx.in(4), ctx.in(5), b.rank(ctx.in(3)) - 1);
  const Id product = matrix_product(b, x, y);
  ctx.out(0,
          {quantize(b, product, ctx.in(6), ctx.in(7), b.rank(product) - 1, b.type(ctx.in(7))), ctx.value(7).type, {}});
  return ok_status();
}

namespace {

// Integers less their zero point, as float32: exact, as are sums of products up to 2^24.
Id centered(GraphBuilder& b, Id x, Id zero_point, int axis) {
  const Id y = cast(b, x, ir::DataType::kFloat32);
  if (zero_point == kAbsent) return y;
  return sub(b, y, cast(b, aligned(b, zero_point, b.rank(x), axis), ir::DataType::kFloat32));
}

}  // namespace

Status convert_matmul_integer(NodeContext& ctx, GraphBuilder& b) {
  const Id x = centered(b, ctx.in(0), ctx.in(2), std::max(0, b.rank(ctx.in(0)) - 2));
  const Id y = centered(b, ctx.in(1), ctx.in(3), b.rank(ctx.in(1)) - 1);
  return ctx.give({cast(b, matrix_product(b, x, y), ir::DataType::kInt32), onnx::ElementType::kInt32, {}});
}

Status convert_conv_integer(NodeContext& ctx, GraphBuilder& b) {
  const Id x = centered(b, ctx.in(0), ctx.in(2), 1), weights = centered(b, ctx.in(1), ctx.in(3), 0);
  REEF_ASSIGN_OR_RETURN(const Id y, convolution(ctx, x, weights, kAbsent));
  return ctx.give({cast(b, y, ir::DataType::kInt32), onnx::ElementType::kInt32, {}});
}

// ONNX Runtime's element-wise operators on quantized tensors: (a, scale, zero) (b, scale, zero) -> (scale, zero).
Status convert_qlinear_binary(NodeContext& ctx, GraphBuilder& b, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(7));
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0), y = dequantize(b, ctx.in(3), ctx.in(4), ctx.in(5), 0);
  const ir::DataType type = b.type(ctx.in(0));
  return ctx.give({quantize(b, binary(b, op, x, y), ctx.in(6), ctx.in(7), 0, type), ctx.value(0).type, {}});
}

Status convert_qlinear_sigmoid(NodeContext& ctx, GraphBuilder& b) {
  const Id y = unary(b, Op::LOGISTIC, dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0));
  return ctx.give({quantize(b, y, ctx.in(3), ctx.in(4), 0, b.type(ctx.in(0))), ctx.value(0).type, {}});
}

Status convert_qlinear_leaky_relu(NodeContext& ctx, GraphBuilder& b) {
  ir::Attributes attributes;
  attributes.set("alpha", static_cast<double>(ctx.float_attribute("alpha", 0.01f)));
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  const Id y = b.emit(Op::LEAKY_RELU, {x}, b.type(x), std::move(attributes));
  return ctx.give({quantize(b, y, ctx.in(3), ctx.in(4), 0, b.type(ctx.in(0))), ctx.value(0).type, {}});
}

Status convert_qlinear_global_average_pool(NodeContext& ctx, GraphBuilder& b) {
  const bool is_last = ctx.int_attribute("channels_last", 0) != 0;
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  Dims axes;
  for (int i = is_last ? 1 : 2; i < b.rank(x) - (is_last ? 1 : 0); ++i) axes.push_back(i);
  const Id y = reduce(b, Op::MEAN, x, axes, true);
  return ctx.give({quantize(b, y, ctx.in(3), ctx.in(4), 0, b.type(ctx.in(0))), ctx.value(0).type, {}});
}

// (scale, zero) of the result, then (tensor, scale, zero) for each part.
Status convert_qlinear_concat(NodeContext& ctx, GraphBuilder& b) {
  std::vector<Id> parts;
  for (int i = 2; i + 2 < ctx.input_count(); i += 3)
    parts.push_back(dequantize(b, ctx.in(i), ctx.in(i + 1), ctx.in(i + 2), 0));
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(parts[0])));
  return ctx.give(
      {quantize(b, concat(b, parts, axis), ctx.in(0), ctx.in(1), 0, b.type(ctx.in(2))), ctx.value(2).type, {}});
}

// Product of quantized matrices with a bias in the product's scale; without an output scale the result is float.
Status convert_qgemm(NodeContext& ctx, GraphBuilder& b) {
  Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  const bool transposes = ctx.int_attribute("transB", 0) != 0;
  const Id y = dequantize(b, ctx.in(3), ctx.in(4), ctx.in(5), transposes ? 0 : 1);
  if (ctx.int_attribute("transA", 0) != 0) x = transpose(b, x, {1, 0});
  Id bias = kAbsent;
  if (ctx.has(6)) {
    const Id scale = mul(b, mul(b, reshape(b, ctx.in(1), {}), ctx.in(4)), ctx.float_attribute("alpha", 1));
    bias = mul(b, cast(b, ctx.in(6), ir::DataType::kFloat32), scale);
    bias = reshape(b, bias, {b.elements(bias)});
  }
  const Id weights = transposes ? y : transpose(b, y, {1, 0});
  const float alpha = ctx.float_attribute("alpha", 1);
  Id result = fully_connected(b, x, weights, alpha == 1 ? bias : kAbsent);
  if (alpha != 1) {
    result = mul(b, result, alpha);
    if (bias != kAbsent) result = add(b, result, bias);
  }
  if (!ctx.has(7)) return ctx.give({result, onnx::ElementType::kFloat, {}});
  const ir::DataType type = ctx.has(8) ? b.type(ctx.in(8)) : b.type(ctx.in(0));
  return ctx.give({quantize(b, result, ctx.in(7), ctx.in(8), 0, type), ctx.value(0).type, {}});
}

}  // namespace reef::import
