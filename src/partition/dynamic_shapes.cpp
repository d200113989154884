// SPDX-License-Identifier: Apache-2.0
// A file states a size for every tensor, known or not, and marks unknown ones in the input's signature at best. So the
// ops' own shape inference is asked: where it needs a value that is not a constant, as that of a RESHAPE with a
// computed shape, TFLite too learns the size only while the model runs. Sizes that follow from such a tensor are
// unknown as well.
#include "partition/dynamic_shapes.h"

#include <cstddef>
#include <cstring>

#include <fmt/format.h>

namespace reef::partition {
namespace {

// Constants above this are no shape operands; inference does not read them.
constexpr std::size_t kLargestOperand = 1 << 16;

// A constant's data, moved where it can be read as integers: in a file it may lie anywhere.
void align(ops::Tensor& tensor, std::vector<std::vector<std::int64_t>>& storage) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignof(std::int64_t) == 0) return;
  if (tensor.bytes > kLargestOperand) return;
  auto& copy = storage.emplace_back(tensor.bytes / sizeof(std::int64_t) + 1);
  std::memcpy(copy.data(), tensor.data, tensor.bytes);
  tensor.data = reinterpret_cast<std::byte*>(copy.data());
}

// Whether the output shapes of `op` depend on values that are computed.
bool needs_values(const ops::OpDef& definition, const ops::OpContext& op) {
  // Ops of the chip have sizes in integer operands alone, which are hardly ever computed: this saves most of the time.
  bool has_computed_integers = false;
  for (int i = 0; i < op.input_count(); ++i) {
    if (!op.has_input(i) || op.input(i).is_constant) continue;
    const ir::DataType type = op.input(i).type;
    has_computed_integers = has_computed_integers || type == ir::DataType::kInt32 || type == ir::DataType::kInt64;
  }
  if (definition.chip.first_runtime != 0 && !has_computed_integers) return false;
  std::vector<ops::Tensor> inputs, outputs;
  std::vector<std::vector<std::int64_t>> storage;
  inputs.reserve(static_cast<std::size_t>(op.input_count()));
  outputs.reserve(static_cast<std::size_t>(op.output_count()));
  std::vector<ops::Tensor*> input_pointers, output_pointers;
  for (int i = 0; i < op.input_count(); ++i) {
    if (!op.has_input(i)) {
      input_pointers.push_back(nullptr);
      continue;
    }
    inputs.push_back(op.input(i));
    if (inputs.back().is_constant) align(inputs.back(), storage);
    input_pointers.push_back(&inputs.back());
  }
  for (int i = 0; i < op.output_count(); ++i) {
    outputs.push_back(op.output(i));
    output_pointers.push_back(&outputs.back());
  }
  ops::InferContext context(op.op(), input_pointers, output_pointers, nullptr);
  return definition.infer(context).code() == StatusCode::kDeferred;
}

bool has_required_inputs(const ops::OpDef& definition, const ops::OpContext& op) {
  for (int i = 0; i < definition.inputs.min; ++i) {
    if (!op.has_input(i)) return false;
  }
  return true;
}

}  // namespace

DynamicShapes::DynamicShapes(const ir::Model& model, const ops::StaticOps& ops) : ops_(&ops), uses_(model) {
  ops::VariableShapes variables(model);
  do follow_all(variables);
  while (variables.distrust(0, open_tensors()));
}

void DynamicShapes::follow_all(const ops::VariableShapes& variables) {
  root_.assign(ops_->graph().tensors.size(), -1);
  reasons_.clear();
  find_inputs();
  for (std::int32_t i = 0; i < ops_->count(); ++i) {
    if (!variables.is_known(0, static_cast<std::size_t>(i))) follow(i);
  }
}

std::vector<bool> DynamicShapes::open_tensors() const {
  std::vector<bool> result(root_.size());
  for (std::size_t i = 0; i < root_.size(); ++i) result[i] = root_[i] >= 0;
  return result;
}

// A batch of any size is stated as 1, and that is what everyone compiles it for. Other open sizes are stated as 1, too,
// and there it is nonsense.
void DynamicShapes::find_inputs() {
  for (const std::int32_t input : ops_->graph().inputs) {
    const ir::Tensor& tensor = ops_->graph().tensors[at(input)];
    for (std::size_t i = 1; i < tensor.shape_signature.size(); ++i) {
      if (tensor.shape_signature[i] >= 0) continue;
      root_[at(input)] = input;
      reasons_[input] = fmt::format("is an input without a fixed size in dimension {}", i);
      break;
    }
  }
}

void DynamicShapes::follow(std::int32_t index) {
  const ir::Operator& op = ops_->op(index);
  const ops::OpDef* definition = ops_->definition(index);
  std::int32_t root = -1;
  for (const std::int32_t input : op.inputs) {
    if (root < 0 && input >= 0) root = root_[at(input)];
  }
  if (definition != nullptr && definition->value_from_shapes) root = -1;  // its own size is the input's rank
  const ops::OpContext context = ops_->context(index);
  if (root < 0 && !op.outputs.empty() && definition != nullptr && has_required_inputs(*definition, context) &&
      needs_values(*definition, context)) {
    root = op.outputs.front();
    // The last computed operand: sizes follow the data.
    std::int32_t operand = -1;
    for (const std::int32_t input : op.inputs) {
      if (input >= 0 && !ops_->tensor(input).is_constant) operand = input;
    }
    const std::int32_t producer = operand < 0 ? -1 : uses_.producer(operand);
    reasons_[root] =
        producer >= 0 ? fmt::format("gets its size from '{}', which op {} {} computes", ops_->tensor(operand).name,
                                    producer, ops_->op(producer).type)
                      : fmt::format("gets its size from values of '{}'", operand < 0 ? "" : ops_->tensor(operand).name);
  }
  if (root < 0) return;
  for (const std::int32_t output : op.outputs) root_[at(output)] = root;
}

std::string DynamicShapes::reason(std::int32_t tensor) const {
  const std::int32_t root = root_[at(tensor)];
  const auto found = reasons_.find(root);
  const std::string why = found == reasons_.end() ? "" : found->second;
  return root == tensor ? why : fmt::format("depends on '{}', which {}", ops_->tensor(root).name, why);
}

bool DynamicShapes::is_computed(std::int32_t tensor) const {
  const std::int32_t root = root_[at(tensor)];
  for (const std::int32_t input : ops_->graph().inputs) {
    if (input == root) return false;
  }
  return true;
}

std::vector<std::int32_t> DynamicShapes::tensors() const {
  std::vector<std::int32_t> result;
  for (std::size_t i = 0; i < root_.size(); ++i) {
    if (root_[i] >= 0) result.push_back(static_cast<std::int32_t>(i));
  }
  return result;
}

}  // namespace reef::partition
