// SPDX-License-Identifier: Apache-2.0
// Appends tensors and operators to a model's first subgraph, in order and with names of the caller's choice, as a
// TFLite runtime takes them. For stages that write operators anew; who changes those that there are uses Graph. Shapes
// are passed by value: references to a tensor end with the next one made.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/at.h"
#include "ir/model.h"
#include "ir/op.h"

namespace reef::graph {

class Appender {
 public:
  explicit Appender(ir::Model& model) : model_(model) {}

  const ir::Tensor& tensor(std::int32_t index) const { return graph().tensors[at(index)]; }
  std::int32_t add_tensor(std::string name, ir::Shape shape, ir::DataType type = ir::DataType::kFloat32,
                          const ir::Quantization& quantization = {});
  std::int32_t add_bytes(std::string name, ir::Shape shape, ir::DataType type, std::vector<std::uint8_t> bytes,
                         const ir::Quantization& quantization = {});
  template <typename T>
  std::int32_t add_constant(std::string name, ir::Shape shape, ir::DataType type, const std::vector<T>& values,
                            const ir::Quantization& quantization = {}) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return add_bytes(std::move(name), std::move(shape), type, std::move(bytes), quantization);
  }
  std::int32_t add_ints(std::string name, const std::vector<std::int32_t>& values);  // of rank 1

  // The reference ends with the next operator. The version is 1 unless the caller says otherwise.
  ir::Operator& op(OpName type, std::string_view options, std::vector<std::int32_t> inputs, std::int32_t output);
  // `name`: of the constant that holds the shape.
  void reshape(std::int32_t from, std::int32_t to, std::string name);
  // Zeros before and behind each dimension, two numbers for each.
  void pad(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& amounts, std::string name);
  // The end of the first dimension of `from`, as much of it as `to` has.
  void drop_first(std::int32_t from, std::int32_t to, const std::string& name);
  void concatenation(std::vector<std::int32_t> parts, int axis, std::int32_t to);
  // Options of a CONV_2D or DEPTHWISE_CONV_2D of size 1x1.
  static void set_pointwise(ir::Operator& op);

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  const ir::Subgraph& graph() const { return model_.subgraphs[0]; }

  ir::Model& model_;
};

}  // namespace reef::graph
