// SPDX-License-Identifier: Apache-2.0
// Adds tensors and operators to a model's first subgraph, as a TFLite runtime takes them. Shapes are passed by value:
// references to a tensor's end with the next one made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "quantize/graph_constants.h"

namespace reef::quantize {

class NewOps {
 public:
  explicit NewOps(ir::Model& model) : model_(model) {}

  std::int32_t tensor(std::string name, ir::Shape shape, ir::DataType type = ir::DataType::kFloat32,
                      const ir::Quantization& quantization = {});
  template <typename T>
  std::int32_t constant(std::string name, ir::Shape shape, ir::DataType type, const std::vector<T>& values,
                        const ir::Quantization& quantization = {}) {
    const std::int32_t t = tensor(std::move(name), std::move(shape), type, quantization);
    set_constant(model_, graph().tensors[static_cast<std::size_t>(t)], values);
    return t;
  }

  // Appended to the subgraph's operators; the reference ends with the next one.
  ir::Operator& op(std::string_view type, std::string_view options, std::vector<std::int32_t> inputs,
                   std::int32_t output);
  // `name`: of the constant that holds the shape.
  void reshape(std::int32_t from, std::int32_t to, std::string name);
  // Zeros before and behind each dimension, two numbers for each.
  void pad(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& amounts, std::string name);
  // What `from` has at the end of its first dimension, where it is longer than `to`.
  void drop_first(std::int32_t from, std::int32_t to, std::string name);
  // Options of a CONV_2D or DEPTHWISE_CONV_2D of size 1x1.
  static void set_pointwise(ir::Operator& op);

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }

  ir::Model& model_;
};

}  // namespace reef::quantize
