// SPDX-License-Identifier: Apache-2.0
// An operator with the tensors around it, as rules and sizes of TFLite Micro see it.
#pragma once

#include <cstdint>
#include <string>

#include "base/at.h"
#include "ir/model.h"

namespace reef::micro {

class OpView {
 public:
  OpView(const ir::Model& model, const ir::Subgraph& graph, const ir::Operator& op)
      : model_(model), graph_(graph), op_(op) {}

  const ir::Operator& op() const { return op_; }
  const ir::Subgraph& graph() const { return graph_; }
  const ir::Attributes& attributes() const { return op_.attributes; }
  // Null for an operand that is absent.
  const ir::Tensor* input(std::size_t i) const { return tensor(op_.inputs, i); }
  const ir::Tensor* output(std::size_t i) const { return tensor(op_.outputs, i); }
  const ir::Tensor* intermediate(std::size_t i) const { return tensor(op_.intermediates, i); }
  bool has_constant_input(std::size_t i) const {
    const ir::Tensor* operand = input(i);
    return operand != nullptr && ir::is_constant(model_, *operand);
  }
  const ir::Model& model() const { return model_; }

  // The type of the first operand; float32 where there is none.
  ir::DataType type() const { return input(0) == nullptr ? ir::DataType::kFloat32 : input(0)->type; }

 private:
  const ir::Tensor* tensor(const std::vector<std::int32_t>& indices, std::size_t i) const {
    if (i >= indices.size() || indices[i] < 0) return nullptr;
    return &graph_.tensors[at(indices[i])];
  }

  const ir::Model& model_;
  const ir::Subgraph& graph_;
  const ir::Operator& op_;
};

// Elements of a tensor whose shape is fixed; 0 where it is not.
inline std::int64_t elements_of(const ir::Tensor& tensor) { return tensor.shape.checked_elements().value_or(0); }

}  // namespace reef::micro
