// SPDX-License-Identifier: Apache-2.0
// The ops of a subgraph as they stand in the file, for stages that judge or change a model without running it.
//
// Types, shapes, quantization and constants are the file's own; nothing is inferred. Data of computed tensors is null.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op_context.h"
#include "ops/op_def.h"

namespace reef::ops {

class StaticOps {
 public:
  // `model` must be verified and outlive this.
  explicit StaticOps(const ir::Model& model, std::size_t subgraph = 0);

  std::int32_t count() const { return static_cast<std::int32_t>(graph_->operators.size()); }
  const ir::Subgraph& graph() const { return *graph_; }
  const ir::Operator& op(std::int32_t index) const { return graph_->operators[at(index)]; }
  // Null: an op this version does not know, or one whose numbers of inputs and outputs are not the op's.
  const OpDef* definition(std::int32_t index) const { return definitions_[at(index)]; }
  // Lives as long as this. Kernels must not be run on it: constants are shared with the model.
  OpContext context(std::int32_t index) const;
  const Tensor& tensor(std::int32_t index) const { return tensors_[at(index)]; }

 private:
  struct Operands {
    std::vector<Tensor*> inputs, outputs, intermediates;
  };
  const ir::Subgraph* graph_;
  std::vector<Tensor> tensors_;
  std::vector<Operands> operands_;
  std::vector<const OpDef*> definitions_;
};

}  // namespace reef::ops
