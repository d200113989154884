// SPDX-License-Identifier: Apache-2.0
// Quantized nodes of ONNX Runtime's own (domain com.microsoft) beside those of quantization.cpp.
//
// Nodes with a scale for each operand are sandwiches of DEQUANTIZE, the float operation and QUANTIZE, from which
// src/quantize makes integer operators. Nodes that round their activations with a scale found while the model runs
// (DynamicQuantize...) become the float operation on the weights' real values: what ONNX Runtime rounds there to save
// time is not rounded, and `reef quantize` finds scales for it as for any float model.
#include <algorithm>

#include "import/onnx/converters.h"
#include "import/onnx/shared_parts.h"

namespace reef::import {

namespace {

// What a standard node's converter gives for float inputs, with this node's attributes.
Result<Id> by_standard_node(NodeContext& ctx, Converter converter, std::vector<Value> inputs,
                            std::int64_t opset = kStandardOpset) {
  NodeContext inner = ctx.with_inputs(std::move(inputs), opset);
  REEF_RETURN_IF_ERROR(converter(inner, inner.b));
  return inner.take_outputs().at(0).id;
}

// Result 0 of a node with inputs (x, scale, zero), ..., (scale, zero) of the result at `at`.
void quantized_out(NodeContext& ctx, Id y, int at) {
  GraphBuilder& b = ctx.b;
  ctx.out(0, {quantize(b, y, ctx.in(at), ctx.in(at + 1), 0, b.type(ctx.in(0))), ctx.value(0).type, {}});
}

// Weights [..., rows, columns] less their zero point, times scale, as a float constant. Parameters: one, one for each
// column, or (with `stacks`) these for each index of the first axis.
Id real_weights(GraphBuilder& b, Id weights, Id scale, Id zero_point, bool stacks = false) {
  const auto spread = [&](Id parameter) {
    const std::int64_t count = b.elements(parameter), rows = stacks ? b.dim(weights, 0) : 1;
    if (count == 1) return reshape(b, cast(b, parameter, ir::DataType::kFloat32), {});
    Dims dims(static_cast<std::size_t>(b.rank(weights)), 1);
    if (stacks) dims[0] = rows;
    dims.back() = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, rows));
    return reshape(b, cast(b, parameter, ir::DataType::kFloat32), dims);
  };
  Id real = cast(b, weights, ir::DataType::kFloat32);
  if (zero_point != kAbsent) real = sub(b, real, spread(zero_point));
  return mul(b, real, spread(scale));
}

}  // namespace

Status convert_qlinear_average_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(ctx.has(3), "the result's scale is missing");
  const bool is_last = ctx.int_attribute("channels_last", 0) != 0;
  Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  if (is_last) x = channels_first(b, x);
  REEF_ASSIGN_OR_RETURN(Id y, by_standard_node(ctx, convert_average_pool, {float_value(x)}));
  quantized_out(ctx, is_last ? channels_last(b, y) : y, 3);
  return ok_status();
}

Status convert_qlinear_softmax(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(ctx.has(3), "the result's scale is missing");
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  const std::int64_t opset = ctx.int_attribute("opset", kStandardOpset);
  REEF_ASSIGN_OR_RETURN(const Id y, by_standard_node(ctx, convert_softmax, {float_value(x)}, opset));
  quantized_out(ctx, y, 3);
  return ok_status();
}

Status convert_qlinear_reduce_mean(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(ctx.has(3), "the result's scale is missing");
  const Id x = dequantize(b, ctx.in(0), ctx.in(1), ctx.in(2), 0);
  REEF_ASSIGN_OR_RETURN(const Id y, by_standard_node(ctx, convert_reduce_mean, {float_value(x)}));
  quantized_out(ctx, y, 3);
  return ok_status();
}

// condition, (x, scale, zero), (y, scale, zero), (scale, zero) of the result.
Status convert_qlinear_where(NodeContext& ctx, GraphBuilder& b) {
  const Id x = dequantize(b, ctx.in(1), ctx.in(2), ctx.in(3), 0), y = dequantize(b, ctx.in(4), ctx.in(5), ctx.in(6), 0);
  const Id z = select(b, ctx.in(0), x, y);
  return ctx.give({quantize(b, z, ctx.in(7), ctx.in(8), 0, b.type(ctx.in(1))), ctx.value(1).type, {}});
}

// QLinearConv with channels first or last; weights are [o, c, h, w] in both.
Status convert_runtime_qlinear_conv(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.int_attribute("channels_last", 0) == 0) return convert_qlinear_conv(ctx, b);
  std::vector<Value> inputs;
  for (int i = 0; i < ctx.input_count(); ++i) inputs.push_back(ctx.value(i));
  const auto turned = [&](Id x, int scale, bool to_first) {
    const Id real = dequantize(b, x, ctx.in(scale), ctx.in(scale + 1), 0);
    const Id moved = to_first ? channels_first(b, real) : channels_last(b, real);
    return quantize(b, moved, ctx.in(scale), ctx.in(scale + 1), 0, b.type(x));
  };
  inputs[0].id = turned(inputs[0].id, 1, true);
  NodeContext inner = ctx.with_inputs(std::move(inputs), kStandardOpset);
  REEF_RETURN_IF_ERROR(convert_qlinear_conv(inner, inner.b));
  Value y = inner.take_outputs().at(0);
  y.id = turned(y.id, 6, false);
  return ctx.give(y);
}

Status convert_nhwc_max_pool(NodeContext& ctx, GraphBuilder& b) {
  Value x = ctx.value(0);
  x.id = channels_first(b, x.id);
  REEF_ASSIGN_OR_RETURN(const Id y, by_standard_node(ctx, convert_max_pool, {x}));
  return ctx.give({channels_last(b, y), ctx.value(0).type, {}});
}

namespace {

Status product_with_bias(NodeContext& ctx, Id x, Id weights, int bias) {
  REEF_RETURN_IF_ERROR(ctx.b.status());
  REEF_REQUIRE(ctx.b.rank(x) >= 1 && ctx.b.rank(weights) >= 1, "an operand has no dimensions");
  Id y = matrix_product(ctx.b, x, weights);
  if (ctx.has(bias)) y = add(ctx.b, y, ctx.in(bias));
  return ctx.give(float_value(y));
}

}  // namespace

// A (float), B, B's scale, B's zero point, bias.
Status convert_dynamic_quantize_matmul(NodeContext& ctx, GraphBuilder& b) {
  return product_with_bias(ctx, ctx.in(0), real_weights(b, ctx.in(1), ctx.in(2), ctx.in(3)), 4);
}

// Made by patterns.cpp of DynamicQuantizeLinear and ConvInteger: X (float), W, W's scale, W's zero point.
Status convert_dynamic_quantize_conv(NodeContext& ctx, GraphBuilder& b) {
  const auto along_filters = [&](Id parameter) {
    if (parameter == kAbsent || b.elements(parameter) == 1) return parameter;
    Dims dims(static_cast<std::size_t>(b.rank(ctx.in(1))), 1);
    dims[0] = b.elements(parameter);
    return reshape(b, parameter, dims);
  };
  Id weights = cast(b, ctx.in(1), ir::DataType::kFloat32);
  if (ctx.has(3)) weights = sub(b, weights, cast(b, along_filters(ctx.in(3)), ir::DataType::kFloat32));
  weights = mul(b, weights, along_filters(ctx.in(2)));
  REEF_ASSIGN_OR_RETURN(const Id y, convolution(ctx, ctx.in(0), weights, kAbsent));
  return ctx.give(float_value(y));
}

// A, B, A's scale, B's scale, A's zero point, B's zero point, bias.
Status convert_matmul_integer_to_float(NodeContext& ctx, GraphBuilder& b) {
  const Id x = dequantize(b, ctx.in(0), ctx.in(2), ctx.in(4), 0);
  return product_with_bias(ctx, x, real_weights(b, ctx.in(1), ctx.in(3), ctx.in(5)), 6);
}

// LSTM whose weights are [directions, inputs, 4 * hidden] integers; scales and zero points follow P.
Status convert_dynamic_quantize_lstm(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(ctx.has(8) && ctx.has(10), "a scale of the weights is missing");
  REEF_REQUIRE(b.rank(ctx.in(1)) == 3 && b.rank(ctx.in(2)) == 3, "weights W and R must have three dimensions");
  const auto weights = [&](int input, int scale) {
    const Id real = real_weights(b, ctx.in(input), ctx.in(scale), ctx.in(scale + 1), true);
    return float_value(transpose(b, real, {0, 2, 1}));
  };
  std::vector<Value> inputs = {ctx.value(0), weights(1, 8), weights(2, 10)};
  for (int i = 3; i < 8; ++i) inputs.push_back(ctx.value(i));
  NodeContext inner = ctx.with_inputs(std::move(inputs), kStandardOpset);
  REEF_RETURN_IF_ERROR(convert_lstm(inner, inner.b));
  const std::vector<Value> outputs = inner.take_outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].id != kAbsent) ctx.out(static_cast<int>(i), outputs[i]);
  }
  return ok_status();
}

namespace {

struct BlockWeights {
  std::int64_t rows = 0, columns = 0, bits = 0, block = 0;  // rows: N, columns: K
  std::int64_t blocks() const { return (columns + block - 1) / block; }
  std::int64_t bytes_of_block() const { return (block * bits + 7) / 8; }
  std::int64_t bytes_of_zeros() const { return (blocks() * bits + 7) / 8; }
};

// Number `index` of those that are packed `bits` each, lowest first.
int packed(Bytes data, std::int64_t first_byte, std::int64_t index, std::int64_t bits) {
  const std::int64_t at = index * bits;
  const int byte = data.data()[first_byte + at / 8];
  return bits == 8 ? byte : (byte >> (at % 8)) & ((1 << bits) - 1);
}

std::vector<float> unpacked(const BlockWeights& w, const Bytes& data, const std::vector<float>& scales,
                            const std::optional<Bytes>& zeros) {
  std::vector<float> values(static_cast<std::size_t>(w.rows * w.columns));
  for (std::int64_t row = 0; row < w.rows; ++row) {
    for (std::int64_t column = 0; column < w.columns; ++column) {
      const std::int64_t block = column / w.block, at = row * w.blocks() + block;
      const int zero = zeros ? packed(*zeros, row * w.bytes_of_zeros(), block, w.bits) : 1 << (w.bits - 1);
      const int value = packed(data, at * w.bytes_of_block(), column % w.block, w.bits);
      values[reef::at(row * w.columns + column)] = static_cast<float>(value - zero) * scales[reef::at(at)];
    }
  }
  return values;
}

}  // namespace

// A times the transpose of [N, K], which is packed in blocks along K with a scale each: B, scales, zero points, order
// of the groups, bias.
Status convert_matmul_nbits(NodeContext& ctx, GraphBuilder& b) {
  const BlockWeights w = {ctx.int_attribute("N", 0), ctx.int_attribute("K", 0), ctx.int_attribute("bits", 4),
                          ctx.int_attribute("block_size", 0)};
  REEF_REQUIRE(w.rows >= 1 && w.rows < (1 << 24) && w.columns >= 1 && w.columns < (1 << 24) && w.block >= 1 &&
                   w.block < (1 << 24) && (w.bits == 2 || w.bits == 4 || w.bits == 8),
               "attributes N {}, K {}, bits {} and block_size {} do not describe weights", w.rows, w.columns, w.bits,
               w.block);
  if (ctx.has(4)) return unsupported("input g_idx: groups in another order are not converted");
  const auto data = b.value(ctx.in(1));
  REEF_ASSIGN_OR_RETURN(const std::vector<float> scales, ctx.floats(2));
  const bool has_zeros = ctx.has(3);
  const auto zeros = has_zeros ? b.value(ctx.in(3)) : std::nullopt;
  if (!data || (has_zeros && (!zeros || b.type(ctx.in(3)) != ir::DataType::kUInt8))) {
    return unsupported("weights or zero points are not constants of type uint8");
  }
  const std::int64_t count = w.rows * w.blocks();
  REEF_REQUIRE(static_cast<std::int64_t>(data->size()) == count * w.bytes_of_block() &&
                   static_cast<std::int64_t>(scales.size()) == count &&
                   (!zeros || static_cast<std::int64_t>(zeros->size()) == w.rows * w.bytes_of_zeros()),
               "{} bytes of weights and {} scales do not fit N {}, K {}, block_size {}", data->size(), scales.size(),
               w.rows, w.columns, w.block);
  const Id weights = b.floats(unpacked(w, *data, scales, zeros), shape_from({w.rows, w.columns}));
  const Id x = ctx.in(0);
  REEF_REQUIRE(b.rank(x) >= 1 && b.dim(x, b.rank(x) - 1) == w.columns, "operand A {} does not have {} columns",
               b.shape(x).to_string(), w.columns);
  Id y = fully_connected(b, x, weights, kAbsent);
  if (ctx.has(5)) y = add(b, y, ctx.in(5));
  return ctx.give(float_value(y));
}

}  // namespace reef::import
