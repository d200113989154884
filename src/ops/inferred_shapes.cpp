// SPDX-License-Identifier: Apache-2.0
#include "ops/inferred_shapes.h"

#include "ops/registry.h"

namespace reef::ops {
namespace {

Tensor bind(const ir::Model& model, const ir::Tensor& tensor, bool is_constant) {
  Tensor bound;
  bound.name = tensor.name;
  bound.type = tensor.type;
  bound.shape = tensor.shape;
  bound.quantization = &tensor.quantization;
  bound.is_variable = tensor.is_variable;
  bound.is_constant = is_constant;
  if (is_constant) {
    const Bytes& data = ir::constant_data(model, tensor);
    // Inference reads and never writes.
    bound.data = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(data.data()));
    bound.bytes = data.size();
  }
  return bound;
}

}  // namespace

std::optional<std::vector<ir::Shape>> inferred_shapes(const ir::Model& model, std::size_t subgraph,
                                                      const ir::Operator& op,
                                                      const std::function<bool(std::int32_t)>& is_constant) {
  const OpDef* definition = find_op(op);
  if (definition == nullptr || definition->has_state || !check_arity(*definition, op).ok()) return {};
  const std::vector<ir::Tensor>& all = model.subgraphs[subgraph].tensors;
  std::vector<Tensor> tensors(op.inputs.size() + op.outputs.size());
  std::vector<Tensor*> inputs, outputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::int32_t id = op.inputs[i];
    if (id >= 0) tensors[i] = bind(model, all[static_cast<std::size_t>(id)], is_constant(id));
    inputs.push_back(id >= 0 ? &tensors[i] : nullptr);
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i] < 0) return {};
    Tensor& tensor = tensors[op.inputs.size() + i];
    tensor = bind(model, all[static_cast<std::size_t>(op.outputs[i])], is_constant(op.outputs[i]));
    outputs.push_back(&tensor);
  }
  InferContext context(op, inputs, outputs, nullptr);
  if (!definition->infer(context).ok()) return {};
  std::vector<ir::Shape> shapes;
  for (const Tensor* output : outputs) {
    if (!output->shape.is_usable()) return {};
    shapes.push_back(output->shape);
  }
  return shapes;
}

}  // namespace reef::ops
