// SPDX-License-Identifier: Apache-2.0
#include "ops/variable_shapes.h"
#include "base/at.h"
#include "ir/op.h"

#include <algorithm>
#include <optional>

namespace reef::ops {
namespace {

using Name = std::pair<std::string, std::string>;

// The variable whose handle this tensor is; nullopt: a handle from elsewhere, such as an input of a loop's body.
std::optional<Name> name_of(const ir::Subgraph& graph, std::int32_t handle) {
  for (const ir::Operator& op : graph.operators) {
    if (op.type != Op::VAR_HANDLE || op.outputs.size() != 1 || op.outputs[0] != handle) continue;
    return Name(op.attributes.get_string("container"), op.attributes.get_string("shared_name"));
  }
  return std::nullopt;
}

bool variable_shapes_is_fixed(const ir::Tensor& tensor) {
  const std::vector<std::int32_t>& signature = tensor.shape_signature;
  return tensor.shape.is_usable() && tensor.shape.elements() > 0 &&
         std::none_of(signature.begin(), signature.end(), [](std::int32_t size) { return size < 0; });
}

}  // namespace

VariableShapes::VariableShapes(const ir::Model& model) : model_(&model) {
  for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
    const ir::Subgraph& graph = model.subgraphs[s];
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const ir::Operator& op = graph.operators[i];
      const bool is_read = op.type == Op::READ_VARIABLE, is_assigned = op.type == Op::ASSIGN_VARIABLE;
      if (!is_read && !is_assigned) continue;
      const bool is_whole = is_read ? op.inputs.size() == 1 && op.outputs.size() == 1 : op.inputs.size() == 2;
      const std::int32_t value = !is_whole ? -1 : is_read ? op.outputs[0] : op.inputs[1];
      const auto name = value < 0 ? std::nullopt : name_of(graph, op.inputs[0]);
      if (!name) {  // it may be any variable
        variables_.clear();
        return;
      }
      auto found =
          std::find_if(variables_.begin(), variables_.end(), [&](const Variable& v) { return v.name == *name; });
      if (found == variables_.end()) found = variables_.insert(found, Variable{*name, {}, false});
      found->uses.push_back({s, i, value, is_read});
    }
  }
  for (Variable& variable : variables_) variable.is_known = agree(variable.uses);
}

const ir::Tensor& VariableShapes::value_of(const Use& use) const {
  return model_->subgraphs[use.subgraph].tensors[at(use.value)];
}

bool VariableShapes::agree(const std::vector<Use>& uses) const {
  const bool is_assigned = std::any_of(uses.begin(), uses.end(), [](const Use& use) { return !use.is_read; });
  return is_assigned && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
           const ir::Tensor& value = value_of(use);
           // Nobody follows the operators of other subgraphs, which only fill variables at the beginning.
           if (!use.is_read && use.subgraph != 0 && !ir::is_constant(*model_, value)) return false;
           return variable_shapes_is_fixed(value) && value.shape == value_of(uses[0]).shape &&
                  value.type == value_of(uses[0]).type;
         });
}

bool VariableShapes::is_known(std::size_t subgraph, std::size_t op) const {
  return std::any_of(variables_.begin(), variables_.end(), [&](const Variable& variable) {
    return variable.is_known && std::any_of(variable.uses.begin(), variable.uses.end(), [&](const Use& use) {
             return use.is_read && use.subgraph == subgraph && use.op == op;
           });
  });
}

bool VariableShapes::distrust(std::size_t subgraph, const std::vector<bool>& is_open) {
  bool is_changed = false;
  for (Variable& variable : variables_) {
    if (!variable.is_known) continue;
    const bool gets_open = std::any_of(variable.uses.begin(), variable.uses.end(), [&](const Use& use) {
      return !use.is_read && use.subgraph == subgraph && is_open[at(use.value)];
    });
    if (!gets_open && agree(variable.uses)) continue;
    variable.is_known = false;
    is_changed = true;
  }
  return is_changed;
}

}  // namespace reef::ops
