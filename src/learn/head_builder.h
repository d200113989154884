// SPDX-License-Identifier: Apache-2.0
// Builds a head operator by operator: a model of one graph whose input is an embedding.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/appender.h"
#include "ir/model.h"
#include "ir/op.h"

namespace reef::learn {

// How an 8-bit tensor stores real numbers: real = scale * (q - zero_point).
struct Affine {
  float scale = 1;
  std::int32_t zero_point = 0;
};

inline std::int32_t lowest_of(ir::DataType type) { return type == ir::DataType::kInt8 ? -128 : 0; }
inline std::int32_t highest_of(ir::DataType type) { return type == ir::DataType::kInt8 ? 127 : 255; }

// The scale and zero point that reach from `low` to `high`, widened to include 0; 0 is stored exactly.
Affine affine_between(double low, double high, ir::DataType type);
// Nearest storable number.
std::uint8_t quantized(double real, const Affine& affine, ir::DataType type);

class HeadBuilder {
 public:
  explicit HeadBuilder(const ir::Tensor& embedding);
  HeadBuilder(const HeadBuilder&) = delete;

  ir::Model take(std::int32_t output);
  std::int32_t input() const { return 0; }
  ir::DataType type() const { return type_; }
  bool is_quantized() const { return type_ != ir::DataType::kFloat32; }
  const ir::Tensor& tensor(std::int32_t index) const { return add_.tensor(index); }

  // A computed tensor of the head's type; `affine` is for 8-bit heads.
  std::int32_t computed(std::string name, ir::Shape shape, const Affine& affine);
  // Weights: for each row of dimension 0 a scale, or one for all. Bytes are float32 in float heads.
  std::int32_t weights(std::string name, ir::Shape shape, std::vector<std::uint8_t> bytes, std::vector<float> scales,
                       std::int32_t zero_point);
  // float32, or int32 with `scales` (one, or one for each).
  std::int32_t biases(std::string name, const std::vector<double>& values, const std::vector<double>& scales);
  // One number of the head's type, exact.
  std::int32_t number(std::string name, double value);

  std::int32_t op(OpName type, std::string_view options, ir::Attributes attributes, std::vector<std::int32_t> inputs,
                  std::int32_t output);
  std::int32_t reshape(std::int32_t x, ir::Shape shape, std::string name);
  std::int32_t softmax(std::int32_t x, std::string name);

 private:
  // Scales and zero points of an 8-bit head; nothing in a float one.
  ir::Quantization stored_by(std::vector<float> scales, std::int32_t zero_point) const;

  ir::DataType type_;
  ir::Model model_;
  graph::Appender add_{model_};
};

}  // namespace reef::learn
