// SPDX-License-Identifier: Apache-2.0
// Builds quantized models operator by operator, for tests. Tensors are numbers; weights are pseudo-random but the same
// every time. Names are the operator's number and type unless given.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace reef::testing {

struct Quantized {
  ir::DataType type = ir::DataType::kInt8;
  float scale = 0.05f;
  std::int64_t zero_point = 0;
};

class QuantizedModel {
 public:
  explicit QuantizedModel(Quantized activations = {});

  std::int32_t input(ir::Shape shape, std::string_view name = "input");
  std::int32_t float_input(ir::Shape shape, std::string_view name = "float_input");

  // Tensors of any kind.
  std::int32_t computed(ir::Shape shape, Quantized quantization, std::string name = "");
  std::int32_t computed_plain(ir::Shape shape, ir::DataType type, std::string name = "");  // not quantized
  std::int32_t ints(std::vector<std::int32_t> values, ir::Shape shape);                    // int32 constant
  std::int32_t ints(std::vector<std::int32_t> values);                                     // of one dimension
  // Constant of the activations' type with pseudo-random content.
  std::int32_t weights(ir::Shape shape, float scale = 0.02f);
  std::int32_t constant_bytes(std::vector<std::uint8_t> bytes, ir::Shape shape, ir::DataType type);

  // Any operator. `options` is the name of its option table ("" for none). The index of output 0; -1: none.
  std::int32_t op(std::string_view type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                  std::string_view options = "", ir::Attributes attributes = {}, int version = 1);

  // Operators by their usual form; the result has the activations' quantization unless it cannot.
  std::int32_t conv(std::int32_t x, int channels, int kernel = 1, int stride = 1, std::string_view activation = "NONE");
  std::int32_t depthwise(std::int32_t x, int kernel = 3, int stride = 1, std::string_view activation = "NONE");
  std::int32_t fully_connected(std::int32_t x, int outputs);
  std::int32_t add(std::int32_t a, std::int32_t b);
  std::int32_t mul(std::int32_t a, std::int32_t b);
  std::int32_t unary(std::string_view type, std::int32_t x, std::string_view options = "",
                     ir::Attributes attributes = {}, int version = 1);
  std::int32_t logistic(std::int32_t x);
  std::int32_t softmax(std::int32_t x);
  std::int32_t reshape(std::int32_t x, ir::Shape shape);
  std::int32_t transpose(std::int32_t x, std::vector<std::int32_t> permutation);
  std::int32_t concatenation(std::vector<std::int32_t> parts, int axis);
  std::int32_t mean(std::int32_t x, std::vector<std::int32_t> axes, bool keep_dims = true);
  std::int32_t max_pool(std::int32_t x, int size, int stride);
  std::int32_t resize(std::string_view type, std::int32_t x, int height, int width, bool align_corners = false,
                      bool half_pixel_centers = false);
  std::int32_t quantize(std::int32_t x, Quantized to);  // from float, or from another quantization
  std::int32_t dequantize(std::int32_t x);
  std::int32_t arg_max(std::int32_t x);

  const ir::Shape& shape(std::int32_t tensor) const;
  ir::Tensor& tensor(std::int32_t index);
  ir::Operator& last_op() { return model_.subgraphs[0].operators.back(); }
  void name(std::int32_t tensor, std::string name);
  // The finished model, verified (a test failure if it is not).
  ir::Model finish(std::vector<std::int32_t> outputs);

 private:
  std::int32_t bias(int channels, float scale);
  std::int32_t like(std::int32_t x, ir::Shape shape);  // computed, quantized as x

  ir::Model model_;
  Quantized activations_;
  std::uint32_t seed_ = 1;
};

}  // namespace reef::testing
