// SPDX-License-Identifier: Apache-2.0
// TFLite's operators as functions: makes the operators of a replacement, in order, as a runtime takes them, with the
// right codes, versions, options and quantization.
//
// Tensors are added to the model at once (and are swept up if nothing comes to use them), operators are collected until
// take(). Each maker returns the tensor that the new operator computes: a new one, or `into` where that is given.
// Shapes are passed by value: references to a tensor's end with the next one made. Operands must be static; nothing
// else is checked. Where a maker needs 8-bit operands, it says so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ir/model.h"
#include "ir/op.h"

namespace reef::graph {

// A new tensor where an existing one could be named.
inline constexpr std::int32_t kNew = -1;

ir::Quantization quantization_of(const Affine8& affine);
// How LOGISTIC and SOFTMAX (TANH) must store their results.
Affine8 unit_affine(ir::DataType type);
Affine8 tanh_affine(ir::DataType type);

class OpList {
 public:
  // `name`: of what is replaced; new tensors are named after it.
  OpList(Graph& graph, std::string name) : graph_(graph), name_(std::move(name)) {}

  std::vector<ir::Operator> take() { return std::move(ops_); }
  std::size_t size() const { return ops_.size(); }
  ir::Operator& last() { return ops_.back(); }
  ir::Shape shape(std::int32_t tensor) const { return graph_.shape(tensor); }

  // ---- Tensors ----
  std::int32_t tensor(ir::DataType type, ir::Shape shape, const ir::Quantization& quantization);
  std::int32_t tensor(ir::Shape shape, const Affine8& affine) {
    return tensor(affine.type, shape, quantization_of(affine));
  }
  // Of the type and quantization of `like`.
  std::int32_t tensor_like(std::int32_t like, ir::Shape shape);
  std::int32_t int_vector(std::span<const std::int64_t> values);                        // int32 [n]
  std::int32_t int_matrix(std::span<const std::int64_t> values, std::int32_t columns);  // int32 [n / columns, columns]
  std::int32_t int_scalar(std::int32_t value);
  // 8-bit, all elements q.
  std::int32_t filled(ir::Shape shape, const Affine8& affine, std::int32_t q);

  // ---- Operators that only move elements ----
  std::int32_t reshape(std::int32_t x, ir::Shape shape, std::int32_t into = kNew);
  std::int32_t transpose(std::int32_t x, std::span<const int> permutation, std::int32_t into = kNew);
  std::int32_t concatenation(std::span<const std::int32_t> parts, int axis, std::int32_t into = kNew);
  // Elements [begin, begin + size) of one dimension.
  std::int32_t slice(std::int32_t x, int axis, std::int32_t begin, std::int32_t size, std::int32_t into = kNew);
  // A box: `sizes` elements from `begins` on, along every dimension.
  std::int32_t slice_box(std::int32_t x, std::span<const std::int64_t> begins, ir::Shape sizes,
                         std::int32_t into = kNew);
  // Equal pieces.
  std::vector<std::int32_t> split(std::int32_t x, int axis, int pieces, std::span<const std::int32_t> into = {});
  std::int32_t tile(std::int32_t x, std::span<const std::int64_t> multiples, std::int32_t into = kNew);

  // ---- Arithmetic on 8-bit tensors ----
  // slope * x + offset in one DEPTHWISE_CONV_2D of size 1x1; x is [1, h, w, c]. -1: the numbers do not fit.
  std::int32_t line(std::int32_t x, double slope, double offset, const Affine8& result, std::int32_t into = kNew);
  // Channels of x, each as often as wanted (new channel i is old channel channels[i]), to the bit, by a CONV_2D with
  // weights 0 and 1. -1: too many weights, or x is not [1, h, w, c] of 8 bits.
  std::int32_t channels_picked(std::int32_t x, std::span<const std::int32_t> channels);
  // The constant `like`, to the bit, as something that is computed: a few elements of `anchor` times 0, plus a bias for
  // each element. -1: too many elements, or types that differ.
  std::int32_t constant(std::int32_t like, std::int32_t anchor, std::int32_t into = kNew);
  // A 1x1 CONV_2D with weights and biases that exist.
  std::int32_t pointwise(std::int32_t x, std::int32_t filter, std::int32_t offsets, std::string_view activation,
                         std::int32_t into);
  std::int32_t weights(ir::Shape shape, ir::DataType type, std::vector<std::uint8_t> values, std::vector<float> scales,
                       std::int32_t zero_point, std::int32_t dimension);
  std::int32_t bias(std::vector<std::int32_t> values, std::vector<float> scales);
  // ADD, SUB, MUL, MAXIMUM, MINIMUM.
  std::int32_t binary(OpName type, std::int32_t a, std::int32_t b, const Affine8& result, std::int32_t into = kNew);
  // LOGISTIC, TANH, RELU, RELU6, QUANTIZE ...: one input, output of the same shape.
  std::int32_t unary(OpName type, std::int32_t x, const Affine8& result, std::int32_t into = kNew);

  // Any other: attributes and operands as given.
  void add(OpName type, std::string_view options_type, ir::Attributes attributes, std::vector<std::int32_t> inputs,
           std::vector<std::int32_t> outputs, ir::DataType operands);

 private:
  std::string next_name();

  Graph& graph_;
  std::string name_;
  int made_ = 0;
  std::vector<ir::Operator> ops_;
};

}  // namespace reef::graph
