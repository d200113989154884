// SPDX-License-Identifier: Apache-2.0
// What passes look for in common.
#pragma once

#include <optional>
#include <string_view>

#include "ir/op.h"
#include "passes/pass.h"

namespace reef::passes {

// All operands and results that are not parameters are float32.
bool is_float(const Graph& graph, TensorId tensor);

// A binary operator with one constant operand.
struct WithConstant {
  TensorId x = kNone, constant = kNone;
  bool constant_first = false;
};
std::optional<WithConstant> with_constant(const Graph& graph, OpId op);
// The same where the constant has one value throughout and broadcasting does not enlarge x.
struct WithNumber {
  TensorId x = kNone;
  float number = 0;
  bool number_first = false;
};
std::optional<WithNumber> with_number(const Graph& graph, OpId op);

// The producer of a tensor if it is of this type and sound, else kNone.
OpId made_by(const Graph& graph, TensorId tensor, OpName type);
// fused_activation_function is NONE (or the operator has none).
bool has_no_activation(const Graph& graph, OpId op);
ir::Attributes activation_attributes(std::string_view activation);

// |a - b| <= tolerance * |b|
bool is_about(double a, double b, double tolerance = 1e-5);

// Axes of MEAN, SUM, REDUCE_MAX and the like, counted from 0, ascending, each once; nullopt: not constant.
std::optional<std::vector<int>> reduced_axes(const Graph& graph, OpId op);
// A reduction of this type over the last axis alone that keeps it: its operand, else kNone.
TensorId reduced_along_last(const Graph& graph, TensorId tensor, OpName type);
// x * x, however it is written: MUL(x, x), SQUARE, POW(x, 2). kNone: `tensor` is none.
TensorId square_root_of(const Graph& graph, TensorId tensor);

// A constant vector with one value per channel (last axis) of a tensor of `shape`, from one that broadcasts to it along
// the other axes; nullopt: it varies along other axes, or would enlarge the result.
std::optional<std::vector<float>> per_channel(const Graph& graph, TensorId constant, const ir::Shape& shape);

// MUL, ADD, SUB or DIV by a constant: scale * x + offset per channel (last axis), before its activation.
struct ChannelLine {
  std::vector<float> scale, offset;  // empty: 1, 0
};
// nullopt: `op` is none of them, or the constant varies along other axes, or a factor is not finite.
std::optional<ChannelLine> channel_line(const Graph& graph, OpId op);

// Elements of one mean what those of the other do.
bool same_numbers(const Graph& graph, TensorId a, TensorId b);

// Begins of a SLICE whose pieces all lie inside, one per axis; nullopt: it is none, or they are not constant.
std::optional<std::vector<std::int64_t>> slice_begins(const Graph& graph, OpId op);
// Operands of a SLICE of x. (Sizes by value: references to tensors' shapes end with the next one added.)
std::vector<TensorId> slice_operands(Graph& graph, TensorId x, const std::vector<std::int64_t>& begins,
                                     ir::Shape sizes);

// Padding of one axis of a window that ends up at `output` positions.
struct AxisPadding {
  std::int64_t before = 0, after = 0;
};
// What SAME means for an axis.
AxisPadding same_padding(std::int64_t input, std::int64_t filter, std::int64_t stride, std::int64_t dilation);

// CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED with constant float weights: where its operands are.
struct Layer {
  OpId op = kNone;
  std::size_t input = 0, weights = 1, bias = 2;
  int output_axis = 0, input_axis = 3;  // of the weights; depthwise has outputs on its last axis and no inputs
  bool is_depthwise = false;
};
std::optional<Layer> as_layer(const Graph& graph, OpId op);
// The bias, zeros where there is none; nullopt: it is not constant.
std::optional<std::vector<float>> bias_of(const Graph& graph, const Layer& layer);
void set_bias(Graph& graph, const Layer& layer, std::vector<float> bias);

}  // namespace reef::passes
