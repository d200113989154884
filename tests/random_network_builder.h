// SPDX-License-Identifier: Apache-2.0
// How a described network (random_network.h) becomes a model: one function for each kind of layer.
//
// A function gets the layer, the tensor that it reads and its numbers, and returns the tensor that it makes, or
// kNoValue where the layer makes no sense. What numbers mean stands before each.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "quantized_model.h"
#include "random_network.h"

namespace reef::testing {

class NetworkBuilder {
 public:
  explicit NetworkBuilder(const RandomNetwork& network);
  std::optional<ir::Model> build();
  static const std::vector<std::string>& ops();

 private:
  using Numbers = std::array<int, 5>;
  using Make = std::int32_t (NetworkBuilder::*)(const RandomLayer&, std::int32_t, const Numbers&);
  struct Maker {
    std::string_view op;
    Make make;
  };
  static const std::vector<Maker>& makers();

  static constexpr int kMostElements = 120000;  // of a tensor
  static constexpr int kNoValue = -1;

  // ---- Values ----
  ir::DataType type() const { return network_.is_signed ? ir::DataType::kInt8 : ir::DataType::kUInt8; }
  std::int64_t zero(int code) const { return code % 256 - (network_.is_signed ? 128 : 0); }
  Quantized quantized(float scale, int code) const { return {type(), scale, zero(code)}; }
  Quantized of(std::int32_t x);
  bool same_quantization(std::int32_t a, std::int32_t b);
  ir::Shape shape(std::int32_t x) const { return model_.shape(x); }
  bool is_image(std::int32_t x) const { return shape(x).rank() == 4; }
  std::int32_t pick(int index) const { return values_[static_cast<std::size_t>(index) % values_.size()]; }
  // The value `from` or the nearest one before it that suits.
  std::int32_t other(int from, const std::function<bool(std::int32_t)>& suits) const;

  // The layer's result; its operand where the layer makes no sense.
  std::int32_t add(const RandomLayer& layer);
  // Adds the operator and notes who reads and what is made.
  std::int32_t op(std::string_view type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                  std::string_view options, ir::Attributes attributes, int version = 1);
  static ir::AttributeValue word(std::string_view name) { return ir::EnumName{std::string(name)}; }
  static ir::AttributeValue number(std::int64_t value) { return value; }

  // ---- Layers that compute (random_network_computing.cpp) ----
  struct Axis {
    int kernel, stride, outputs;
  };
  static std::optional<Axis> axis(int size, int kernel, int stride, int dilation, bool same);
  static std::string_view activation(int n);
  std::int32_t bias(int channels, float scale, int seed);
  void per_channel(std::int32_t weights, int channels, int dimension);
  std::int32_t constant_beside(std::int32_t x, int which, bool like_x);
  bool is_repeated(std::int32_t y, std::int32_t x) const;
  std::int32_t convolution(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t transpose_conv(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t fully_connected(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t matrix_product(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t two_operands(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t pool(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t reduction(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t unary(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t requantize(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t prelu(const RandomLayer& layer, std::int32_t x, const Numbers& n);

  // ---- Layers that move elements (random_network_moving.cpp) ----
  static int resized(int size, int n);
  static int position_denominator(int from, int to, bool align_corners, bool half_pixels);
  std::int32_t reshape(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t other_rank(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t transpose(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t pad(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t concatenation(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t pack(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t unpack(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t slice(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t split(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t tile(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t blocks(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t resize(const RandomLayer& layer, std::int32_t x, const Numbers& n);

  // ---- Blocks of several operators (random_network_blocks.cpp) ----
  std::int32_t reshaped(std::int32_t x, const ir::Shape& to);
  std::int32_t transposed(std::int32_t x, const std::vector<std::int32_t>& order);
  std::int32_t product(std::int32_t a, std::int32_t b, bool adj_b, float scale, int zero);
  std::int32_t attention(const RandomLayer& layer, std::int32_t x, const Numbers& n);
  std::int32_t layer_norm(const RandomLayer& layer, std::int32_t x, const Numbers& n);

  const RandomNetwork& network_;
  QuantizedModel model_;
  std::vector<std::int32_t> values_;       // by layer, from the input on
  std::vector<std::int32_t> read_, made_;  // tensors
};

}  // namespace reef::testing
