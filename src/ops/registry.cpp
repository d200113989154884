// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"

#include <unordered_map>

namespace reef::ops {

namespace {

constexpr const OpDef* kOps[] = {
#define OP(file, name) &file##_op,
#include "ir/ops.def"
#undef OP
};

const OpDef* find_op(std::string_view type) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpDef*> by_name;
    for (const OpDef* def : kOps) by_name.emplace(def->name, def);
    return by_name;
  }();
  const auto found = index.find(type);
  return found == index.end() ? nullptr : found->second;
}

bool registry_has(const OpDef* def, Trait trait) { return def != nullptr && (def->traits & trait_set({trait})) != 0; }

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(const ir::Operator& op) {
  const OpDef* const def = find_op(op.type);
  return def == nullptr || def->is_custom != op.is_custom() ? nullptr : def;
}

bool has_same_bytes(const ir::Operator& op) {
  const OpDef* const def = find_op(op);
  return def != nullptr && def->same_bytes;
}

bool has_trait(const ir::Operator& op, Trait trait) { return registry_has(find_op(op), trait); }

bool has_trait(std::string_view type, Trait trait) {
  const OpDef* const def = find_op(type);
  return def != nullptr && !def->is_custom && registry_has(def, trait);
}

Form form_of(const ir::Operator& op) {
  const OpDef* const def = find_op(op);
  return def == nullptr ? Form::kOther : def->form;
}

bool is_elementwise(const ir::Operator& op) {
  const Form form = form_of(op);
  return form == Form::kUnary || form == Form::kBinary || form == Form::kElementwise;
}

bool is_elementwise_over(const ir::Operator& op, std::size_t inputs) {
  const OpDef* const def = find_op(op);
  InputSet all = 0;
  for (std::size_t i = 0; i < inputs; ++i) all |= input_set({static_cast<int>(i)});
  return def != nullptr && op.inputs.size() == inputs && (def->elementwise & all) == all;
}

Status check_arity(const OpDef& def, const ir::Operator& op) {
  const auto inputs = static_cast<int>(op.inputs.size());
  const auto outputs = static_cast<int>(op.outputs.size());
  REEF_REQUIRE(inputs >= def.inputs.min && inputs <= def.inputs.max, "{} takes {} to {} inputs, but has {}", def.name,
               def.inputs.min, def.inputs.max, inputs);
  REEF_REQUIRE(outputs >= def.outputs.min && outputs <= def.outputs.max, "{} has {} to {} outputs, but {} are given",
               def.name, def.outputs.min, def.outputs.max, outputs);
  for (int i = 0; i < def.inputs.min; ++i) {
    REEF_REQUIRE(op.inputs[at(i)] >= 0, "input {} is left out, but the op needs it", i);
  }
  return ok_status();
}

}  // namespace reef::ops
