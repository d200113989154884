// SPDX-License-Identifier: Apache-2.0
#include "ops/dependencies.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ops/registry.h"

namespace reef::ops {
namespace {

// It may touch any variable.
constexpr char kAny[] = "*";

bool is_handle(const ir::Tensor& tensor) {
  return tensor.type == ir::DataType::kResource || tensor.type == ir::DataType::kVariant;
}

bool runs_subgraphs(const ir::Operator& op) {
  return op.type == Op::IF || op.type == Op::WHILE || op.type == Op::CALL_ONCE;
}

void sort_once(std::vector<std::int32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

Dependencies::Dependencies(const ir::Model& model)
    : graph_(&model.subgraphs[0]),
      predecessors_(graph_->operators.size()),
      successors_(graph_->operators.size()),
      uses_(model),
      is_output_(graph_->tensors.size()),
      is_constant_(graph_->tensors.size()) {
  for (std::size_t i = 1; i < model.subgraphs.size(); ++i) {
    const std::vector<ir::Tensor>& tensors = model.subgraphs[i].tensors;
    subgraphs_have_handles_ = subgraphs_have_handles_ || std::any_of(tensors.begin(), tensors.end(), is_handle);
  }
  for (std::size_t i = 0; i < graph_->tensors.size(); ++i) {
    is_constant_[i] = ir::is_constant(model, graph_->tensors[i]);
  }
  for (const std::int32_t tensor : graph_->outputs) {
    if (tensor >= 0) is_output_[index(tensor)] = true;
  }
  for (std::int32_t op = 0; op < op_count(); ++op) {
    const ir::Operator& source = graph_->operators[index(op)];
    for (const std::int32_t tensor : source.inputs) {
      const std::int32_t producer = tensor < 0 ? -1 : uses_.producer(tensor);
      if (producer < 0 || producer >= op) continue;
      predecessors_[index(op)].push_back(producer);
      if (is_handle(graph_->tensors[index(tensor)])) ties_.push_back({producer, op});
    }
  }
  order_states();
  for (std::int32_t op = 0; op < op_count(); ++op) {
    sort_once(predecessors_[index(op)]);
    for (const std::int32_t earlier : predecessors_[index(op)]) successors_[index(earlier)].push_back(op);
  }
}

// The variable behind a handle that an operator touches; kAny if it cannot be told which; empty: none.
std::string Dependencies::variable_of(const ir::Operator& op) const {
  if (op.type == Op::VAR_HANDLE) return "";  // names one, touches none
  if (op.type == Op::READ_VARIABLE || op.type == Op::ASSIGN_VARIABLE) {
    const std::int32_t handle = op.inputs.empty() || op.inputs[0] < 0 ? -1 : uses_.producer(op.inputs[0]);
    if (handle < 0 || graph_->operators[index(handle)].type != Op::VAR_HANDLE) return kAny;
    const ir::Attributes& names = graph_->operators[index(handle)].attributes;
    return fmt::format("{}/{}", names.get_string("container"), names.get_string("shared_name"));
  }
  const OpDef* definition = find_op(op);
  const bool has_state = definition != nullptr && definition->has_state;
  if (!has_state && !reads(op, is_handle)) return "";
  const bool is_ordered_by_tensor = reads(op, [](const ir::Tensor& tensor) { return tensor.is_variable; });
  return is_ordered_by_tensor && !runs_subgraphs(op) && !reads(op, is_handle) ? "" : kAny;
}

bool Dependencies::reads(const ir::Operator& op, bool (*predicate)(const ir::Tensor&)) const {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](std::int32_t t) { return t >= 0 && predicate(graph_->tensors[index(t)]); });
}

// Something that lives beside the graph, and that other operators reach as well.
bool Dependencies::touches_shared(const ir::Operator& op) const {
  return reads(op, is_handle) || (runs_subgraphs(op) && subgraphs_have_handles_);
}

// Pairs of operators on one variable behind a handle, each with the next one on it; of those that `takes` names.
template <typename Takes, typename Use>
void Dependencies::for_each_pair(const Takes& takes, const Use& use) const {
  std::map<std::string, std::int32_t> last;  // by variable: the operator that touched it last
  for (std::int32_t op = 0; op < op_count(); ++op) {
    const ir::Operator& source = graph_->operators[index(op)];
    const std::string variable = takes(source) ? variable_of(source) : "";
    if (variable.empty()) continue;
    for (const auto& [name, earlier] : last) {
      if (variable == kAny || name == kAny || name == variable) use(earlier, op);
    }
    if (variable == kAny) last.clear();
    last[variable] = op;
  }
}

void Dependencies::order_states() {
  std::vector<std::int32_t> last_of_tensor(graph_->tensors.size(), -1);
  for (std::int32_t op = 0; op < op_count(); ++op) {
    const ir::Operator& source = graph_->operators[index(op)];
    for (const auto* operands : {&source.inputs, &source.outputs}) {
      for (const std::int32_t tensor : *operands) {
        if (tensor < 0 || !graph_->tensors[index(tensor)].is_variable) continue;
        const std::int32_t earlier = std::exchange(last_of_tensor[index(tensor)], op);
        if (earlier < 0 || earlier == op) continue;
        predecessors_[index(op)].push_back(earlier);
        ties_.push_back({earlier, op});
      }
    }
  }
  for_each_pair([](const ir::Operator&) { return true; },
                [&](std::int32_t earlier, std::int32_t op) { predecessors_[index(op)].push_back(earlier); });
  for_each_pair([&](const ir::Operator& op) { return touches_shared(op); },
                [&](std::int32_t earlier, std::int32_t op) {
                  ties_.push_back({earlier, op});
                });
}

Dependencies::Border Dependencies::border(std::span<const std::int32_t> ops) const {
  std::vector<bool> inside(graph_->operators.size()), listed(graph_->tensors.size());
  for (const std::int32_t op : ops) inside[index(op)] = true;
  Border border;
  for (const std::int32_t op : ops) {
    for (const std::int32_t tensor : graph_->operators[index(op)].inputs) {
      if (!is_computed(tensor) || listed[index(tensor)]) continue;
      const std::int32_t from = producer(tensor);
      if (from >= 0 && inside[index(from)]) continue;
      listed[index(tensor)] = true;
      border.inputs.push_back(tensor);
    }
  }
  for (const std::int32_t op : ops) {
    for (const std::int32_t tensor : graph_->operators[index(op)].outputs) {
      if (tensor < 0) continue;
      const auto& readers = uses_.consumers(tensor);
      const bool leaves = is_output_[index(tensor)] || std::any_of(readers.begin(), readers.end(),
                                                                   [&](std::int32_t r) { return !inside[index(r)]; });
      if (leaves) border.outputs.push_back(tensor);
    }
  }
  sort_once(border.inputs);
  sort_once(border.outputs);
  return border;
}

}  // namespace reef::ops
