// SPDX-License-Identifier: Apache-2.0
#include "ops/static_ops.h"

#include "ops/registry.h"

namespace reef::ops {
namespace {

Tensor bind(const ir::Model& model, const ir::Tensor& tensor) {
  Tensor bound;
  bound.name = tensor.name;
  bound.type = tensor.type;
  bound.shape = tensor.shape;
  bound.quantization = &tensor.quantization;
  bound.is_variable = tensor.is_variable;
  const Bytes& data = ir::constant_data(model, tensor);
  bound.is_constant = !data.empty() || model.buffers[at(tensor.buffer)].is_empty_constant;
  // Ops see mutable memory because kernels write their outputs; nothing here runs one.
  if (bound.is_constant) bound.data = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(data.span().data()));
  bound.bytes = data.span().size();
  return bound;
}

}  // namespace

StaticOps::StaticOps(const ir::Model& model, std::size_t subgraph) : graph_(&model.subgraphs[subgraph]) {
  tensors_.reserve(graph_->tensors.size());
  for (const ir::Tensor& tensor : graph_->tensors) tensors_.push_back(bind(model, tensor));
  const auto pointers = [this](const std::vector<std::int32_t>& indices) {
    std::vector<Tensor*> result;
    result.reserve(indices.size());
    for (const std::int32_t index : indices) {
      result.push_back(index < 0 ? nullptr : &tensors_[at(index)]);
    }
    return result;
  };
  for (const ir::Operator& op : graph_->operators) {
    operands_.push_back({pointers(op.inputs), pointers(op.outputs), pointers(op.intermediates)});
    const OpDef* definition = find_op(op);
    definitions_.push_back(definition != nullptr && check_arity(*definition, op).ok() ? definition : nullptr);
  }
}

OpContext StaticOps::context(std::int32_t index) const {
  const Operands& operands = operands_[at(index)];
  OpContext context(op(index), operands.inputs, operands.outputs, nullptr);
  context.set_intermediates(operands.intermediates);
  return context;
}

}  // namespace reef::ops
