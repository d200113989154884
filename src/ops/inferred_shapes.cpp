// SPDX-License-Identifier: Apache-2.0
#include "ops/inferred_shapes.h"

#include <cstring>

#include "ir/describe.h"
#include "ops/registry.h"

namespace reef::ops {
namespace {

// Constants above this are no shape operands; inference does not read them.
constexpr std::size_t kLargestOperand = 1 << 16;

// The operands and results of one operator as inference sees them.
class BoundOp {
 public:
  BoundOp(const ir::Model& model, std::size_t subgraph, const ir::Operator& op,
          const std::function<bool(std::int32_t)>& is_constant)
      : model_(model), tensors_(op.inputs.size() + op.outputs.size()) {
    const std::vector<ir::Tensor>& all = model.subgraphs[subgraph].tensors;
    const auto bind_one = [&](std::size_t slot, std::int32_t id) -> Tensor* {
      if (id < 0) return nullptr;
      bind(tensors_[slot], all[at(id)], is_constant(id));
      return &tensors_[slot];
    };
    for (std::size_t i = 0; i < op.inputs.size(); ++i) inputs.push_back(bind_one(i, op.inputs[i]));
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      outputs.push_back(bind_one(op.inputs.size() + i, op.outputs[i]));
    }
  }

  std::vector<Tensor*> inputs, outputs;

 private:
  void bind(Tensor& bound, const ir::Tensor& tensor, bool is_constant) {
    bound.name = tensor.name;
    bound.type = tensor.type;
    bound.shape = tensor.shape;
    bound.quantization = &tensor.quantization;
    bound.is_variable = tensor.is_variable;
    bound.is_constant = is_constant;
    if (!is_constant) return;
    const Bytes& data = ir::constant_data(model_, tensor);
    bound.bytes = data.size();
    if (reinterpret_cast<std::uintptr_t>(data.data()) % alignof(std::int64_t) == 0) {
      // Inference reads and never writes.
      bound.data = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(data.data()));
    } else if (data.size() <= kLargestOperand) {  // in a file data may lie anywhere
      auto& copy = aligned_.emplace_back(data.size() / sizeof(std::int64_t) + 1);
      std::memcpy(copy.data(), data.data(), data.size());
      bound.data = reinterpret_cast<std::byte*>(copy.data());
    }
  }

  const ir::Model& model_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::int64_t>> aligned_;
};

std::string tensor_text(const ir::Model& model, std::size_t subgraph, std::int32_t tensor) {
  return ir::describe_name(model.subgraphs[subgraph].tensors[at(tensor)].name);
}

// Custom ops of one name exist in several kinds: one that this version would refuse may be somebody else's.
Status another_kind(const Status& status) {
  return unsupported("another kind of this custom op: {}", status.message());
}

}  // namespace

Result<std::vector<ir::Shape>> infer_shapes(const ir::Model& model, std::size_t subgraph, const ir::Operator& op,
                                            const std::function<bool(std::int32_t)>& is_constant) {
  const OpDef* definition = find_op(op);
  if (definition == nullptr) return unsupported("{} is not known", ir::describe_name(op.type));
  const Status arity = check_arity(*definition, op);
  if (!arity.ok()) return op.is_custom() ? another_kind(arity) : arity;
  BoundOp bound(model, subgraph, op, is_constant);
  for (const Tensor* output : bound.outputs) REEF_REQUIRE(output != nullptr, "an output is missing");
  InferContext context(op, bound.inputs, bound.outputs, nullptr);
  const Status inferred = definition->infer(context);
  if (inferred.code() == StatusCode::kInvalidInput && op.is_custom()) return another_kind(inferred);
  REEF_RETURN_IF_ERROR(inferred);
  std::vector<ir::Shape> shapes;
  for (std::size_t i = 0; i < bound.outputs.size(); ++i) {
    REEF_REQUIRE(bound.outputs[i]->shape.is_usable(), "output '{}' would have shape {}, which no tensor can have",
                 tensor_text(model, subgraph, op.outputs[i]), bound.outputs[i]->shape.to_string());
    shapes.push_back(bound.outputs[i]->shape);
  }
  return shapes;
}

std::optional<std::vector<ir::Shape>> inferred_shapes(const ir::Model& model, std::size_t subgraph,
                                                      const ir::Operator& op,
                                                      const std::function<bool(std::int32_t)>& is_constant) {
  const OpDef* definition = find_op(op);
  if (definition == nullptr || definition->has_state) return {};
  auto shapes = infer_shapes(model, subgraph, op, is_constant);
  if (!shapes.ok()) return {};
  return std::move(shapes).value();
}

Status check_declared_shapes(const ir::Model& model, std::size_t subgraph, const ir::Operator& op) {
  const std::vector<ir::Tensor>& tensors = model.subgraphs[subgraph].tensors;
  const auto is_constant = [&](std::int32_t id) { return ir::is_constant(model, tensors[at(id)]); };
  REEF_ASSIGN_OR_RETURN(const std::vector<ir::Shape> shapes, infer_shapes(model, subgraph, op, is_constant));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const ir::Tensor& tensor = tensors[at(op.outputs[i])];
    REEF_REQUIRE(tensor.shape == shapes[i], "{}: output '{}' is declared as {}, but the operator gives {}", op.type,
                 tensor_text(model, subgraph, op.outputs[i]), tensor.shape.to_string(), shapes[i].to_string());
  }
  return ok_status();
}

}  // namespace reef::ops
