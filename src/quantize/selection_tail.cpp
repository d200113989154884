// SPDX-License-Identifier: Apache-2.0
#include "quantize/selection_tail.h"

#include <algorithm>
#include <map>

#include "graph/appender.h"
#include "ir/compact.h"
#include "ir/uses.h"
#include "ir/verify.h"
#include "quantize/op_rules.h"
#include "quantize/output_parts.h"

namespace reef::quantize {
namespace {

// Also peaks of a heat map: where it equals its own maximum of the neighbourhood.
bool chooses(const ir::Subgraph& graph, const ir::Uses& uses, const ir::Operator& op) {
  const auto is_computed_float = [&](std::int32_t t) {
    return t >= 0 && uses.producer(t) >= 0 && graph.tensors[at(t)].type == ir::DataType::kFloat32;
  };
  if (op.type == Op::EQUAL || op.type == Op::NOT_EQUAL) {
    return std::all_of(op.inputs.begin(), op.inputs.end(), is_computed_float);
  }
  return op.type == Op::TOPK_V2 || op.type.starts_with("NON_MAX_SUPPRESSION") ||
         op.type == Op::TFLite_Detection_PostProcess;
}

bool is_layer(const ir::Operator& op) {
  const OpRule* rule = rule_of(op.type);
  const bool has_weights = rule != nullptr && (rule->kind == RuleKind::kWeighted || rule->kind == RuleKind::kRecurrent);
  return has_weights || op.type == Op::BATCH_MATMUL;
}

// By operator: a layer comes behind it, or it is one.
std::vector<bool> leading_to_layers(const ir::Subgraph& graph, const ir::Uses& uses) {
  std::vector<bool> leads(graph.operators.size(), false);
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    leads[i] = is_layer(graph.operators[i]);
    for (const std::int32_t t : graph.operators[i].outputs) {
      if (t < 0) continue;
      const auto& readers = uses.consumers(t);
      leads[i] =
          leads[i] || std::any_of(readers.begin(), readers.end(), [&](auto reader) { return leads[at(reader)]; });
    }
  }
  return leads;
}

// Choices without layers behind them, and everything that depends on them.
std::vector<bool> chosen_and_after(const ir::Subgraph& graph, const ir::Uses& uses) {
  const std::vector<bool> leads = leading_to_layers(graph, uses);
  std::vector<bool> is_tail(graph.operators.size(), false);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    is_tail[i] =
        (chooses(graph, uses, op) && !leads[i]) || std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) {
          return t >= 0 && uses.producer(t) >= 0 && is_tail[at(uses.producer(t))];
        });
  }
  return is_tail;
}

// Operators that make plain numbers for the end alone, such as the place of each row's largest score, belong to it:
// numbers of classes and places are not to be judged by their distance.
void add_makers_of_numbers(const ir::Subgraph& graph, const ir::Uses& uses, std::vector<bool>& is_tail) {
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    const auto serves_it = [&](std::int32_t t) {
      if (t < 0) return true;
      const auto& readers = uses.consumers(t);
      return graph.tensors[at(t)].type != ir::DataType::kFloat32 && !uses.is_output(t) && !readers.empty() &&
             std::all_of(readers.begin(), readers.end(), [&](auto reader) { return is_tail[at(reader)]; });
    };
    if (!is_tail[i] && std::all_of(op.outputs.begin(), op.outputs.end(), serves_it)) is_tail[i] = true;
  }
}

// Copies what the end needs into a model that the rest became.
class Joiner {
 public:
  Joiner(const SelectionTail& tail, const std::vector<GivenOut>& given, ir::Model& model)
      : tail_(tail), from_(tail.whole.subgraphs[0]), given_(given), model_(model), new_ops_(model) {}

  Status run() {
    const std::vector<std::int32_t> rest_outputs = model_.subgraphs[0].outputs;
    const std::vector<std::int32_t> rest_inputs = model_.subgraphs[0].inputs;
    REEF_REQUIRE(given_.size() == tail_.borders.size() && rest_inputs.size() == from_.inputs.size(),
                 "the model without its choice of the best has other inputs or outputs than before (a defect in Reef)");
    for (std::size_t i = 0; i < tail_.ops.size(); ++i) {
      for (const std::int32_t t : from_.operators[at(tail_.ops[i])].inputs) {
        if (t >= 0 && !there_.contains(t)) there_[t] = bring(t, rest_inputs, rest_outputs);
      }
      append(from_.operators[at(tail_.ops[i])]);
    }
    set_outputs(rest_outputs);
    ir::drop_unused_tensors(model_, 0);
    ir::drop_unused_buffers(model_);
    return ir::verify(model_).in("the model with its choice of the best put back (a defect in Reef)");
  }

 private:
  std::size_t position_of(std::int32_t border) const {
    return static_cast<std::size_t>(std::find(tail_.borders.begin(), tail_.borders.end(), border) -
                                    tail_.borders.begin());
  }

  // A tensor of the whole model that an operator of the end reads: computed by the rest, an input, or a constant.
  std::int32_t bring(std::int32_t t, const std::vector<std::int32_t>& rest_inputs,
                     const std::vector<std::int32_t>& rest_outputs) {
    const auto input = std::find(from_.inputs.begin(), from_.inputs.end(), t);
    if (input != from_.inputs.end())
      return in_float(rest_inputs[at(static_cast<std::int32_t>(input - from_.inputs.begin()))], t);
    const std::size_t position = position_of(t);
    if (position == tail_.borders.size()) return copy(t);
    const GivenOut& out = given_[position];
    std::vector<std::int32_t> parts;
    for (std::size_t i = 0; i < out.count; ++i) parts.push_back(in_float(rest_outputs[out.first + i], t));
    return parts.size() == 1 ? parts[0] : add_joint(model_, parts, out.axis, from_.tensors[at(t)].name + "_joined");
  }

  std::int32_t in_float(std::int32_t there, std::int32_t t) {
    const ir::Tensor& tensor = model_.subgraphs[0].tensors[at(there)];
    if (tensor.type == from_.tensors[at(t)].type) return there;
    const int version = tensor.type == ir::DataType::kInt16 ? 3 : tensor.type == ir::DataType::kInt8 ? 2 : 1;
    const std::int32_t made = new_ops_.add_tensor(tensor.name + "_float", tensor.shape);
    new_ops_.op(Op::DEQUANTIZE, "DequantizeOptions", {there}, made).version = version;
    return made;
  }

  std::int32_t copy(std::int32_t t) {
    ir::Tensor made = from_.tensors[at(t)];
    if (made.buffer != 0) {
      model_.buffers.push_back(tail_.whole.buffers[at(made.buffer)]);
      made.buffer = static_cast<std::int32_t>(model_.buffers.size()) - 1;
    }
    model_.subgraphs[0].tensors.push_back(std::move(made));
    return static_cast<std::int32_t>(model_.subgraphs[0].tensors.size()) - 1;
  }

  void append(ir::Operator op) {
    for (std::int32_t& t : op.inputs) t = t < 0 ? t : there_.at(t);
    for (std::int32_t& t : op.outputs) {
      if (t < 0) continue;
      const std::int32_t made = copy(t);
      there_[t] = made;
      t = made;
    }
    for (std::int32_t& t : op.intermediates) t = t < 0 ? t : copy(t);
    model_.subgraphs[0].operators.push_back(std::move(op));
  }

  void set_outputs(const std::vector<std::int32_t>& rest_outputs) {
    const ir::Uses uses(tail_.whole);
    const auto is_made_here = [&](std::int32_t t) {
      return uses.producer(t) >= 0 && std::binary_search(tail_.ops.begin(), tail_.ops.end(), uses.producer(t));
    };
    std::vector<std::int32_t>& outputs = model_.subgraphs[0].outputs;
    outputs.clear();
    for (const std::int32_t t : from_.outputs) {
      if (is_made_here(t)) {
        outputs.push_back(there_.at(t));
        continue;
      }
      const GivenOut& out = given_[position_of(t)];
      for (std::size_t i = 0; i < out.count; ++i) outputs.push_back(rest_outputs[out.first + i]);
    }
    for (std::size_t s = 0; s < std::min(model_.signatures.size(), tail_.whole.signatures.size()); ++s) {
      if (tail_.whole.signatures[s].subgraph != 0) continue;
      for (const ir::SignatureTensor& entry : tail_.whole.signatures[s].outputs) {
        if (is_made_here(entry.tensor)) model_.signatures[s].outputs.push_back({entry.name, there_.at(entry.tensor)});
      }
    }
  }

  const SelectionTail& tail_;
  const ir::Subgraph& from_;
  const std::vector<GivenOut>& given_;
  ir::Model& model_;
  graph::Appender new_ops_;
  std::map<std::int32_t, std::int32_t> there_;  // tensors of the whole model, as tensors of model_
};

}  // namespace

SelectionTail take_off_selection(ir::Model& model) {
  SelectionTail tail;
  ir::Subgraph& graph = model.subgraphs[0];
  const ir::Uses uses(model);
  std::vector<bool> is_tail = chosen_and_after(graph, uses);
  if (std::find(is_tail.begin(), is_tail.end(), true) == is_tail.end() ||
      std::none_of(graph.operators.begin(), graph.operators.end(), is_layer)) {
    return tail;
  }
  add_makers_of_numbers(graph, uses, is_tail);
  tail.whole = model;
  const auto is_rest = [&](std::int32_t t) { return uses.producer(t) < 0 || !is_tail[at(uses.producer(t))]; };
  for (const std::int32_t t : graph.outputs) {
    if (is_rest(t)) tail.borders.push_back(t);
  }
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!is_tail[i]) continue;
    tail.ops.push_back(static_cast<std::int32_t>(i));
    for (const std::int32_t t : graph.operators[i].inputs) {
      const bool is_computed = t >= 0 && uses.producer(t) >= 0 && is_rest(t);
      if (!is_computed || std::find(tail.borders.begin(), tail.borders.end(), t) != tail.borders.end()) continue;
      tail.borders.push_back(t);
    }
  }
  graph.outputs = tail.borders;
  for (ir::Signature& signature : model.signatures) {
    if (signature.subgraph != 0) continue;
    std::erase_if(signature.outputs, [&](const ir::SignatureTensor& entry) { return !is_rest(entry.tensor); });
  }
  std::size_t number = 0;
  std::erase_if(graph.operators, [&](const ir::Operator&) { return is_tail[number++]; });
  return tail;
}

Status put_back_selection(const SelectionTail& tail, const std::vector<GivenOut>& given, ir::Model& model) {
  return tail.empty() ? ok_status() : Joiner(tail, given, model).run();
}

}  // namespace reef::quantize
