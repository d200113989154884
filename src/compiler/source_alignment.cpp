// SPDX-License-Identifier: Apache-2.0
#include "compiler/source_alignment.h"

#include <algorithm>
#include <optional>

#include "formats/darwinn/reader.h"
#include "ir/tensor_names.h"

namespace reef::compiler {
namespace {

bool is_same_tensor(const ir::Model& compiled, const ir::Tensor& a, const ir::Model& source, const ir::Tensor& b) {
  return (a.name == b.name || ir::name_before_apart(a.name) == b.name) && a.type == b.type && a.shape == b.shape &&
         a.is_variable == b.is_variable && a.quantization.scale == b.quantization.scale &&
         a.quantization.zero_point == b.quantization.zero_point &&
         ir::constant_data(compiled, a) == ir::constant_data(source, b);
}

// By tensor of the compiled model, that of the source; -1: not known.
class Aligner {
 public:
  Aligner(const ir::Model& compiled, const ir::Model& source)
      : compiled_(compiled), source_(source), mine_(compiled.subgraphs[0]), theirs_(source.subgraphs[0]) {}

  std::vector<std::int32_t> run(bool from_the_end) {
    result_.assign(mine_.tensors.size(), -1);
    bind_all(mine_.inputs, theirs_.inputs);
    bind_all(mine_.outputs, theirs_.outputs);
    follow_operators();
    fill_by_order(from_the_end);
    return std::move(result_);
  }

 private:
  bool is_same(std::int32_t a, std::int32_t b) const {
    return a >= 0 && b >= 0 &&
           is_same_tensor(compiled_, mine_.tensors[reef::at(a)], source_, theirs_.tensors[reef::at(b)]);
  }
  std::int32_t& bound(std::int32_t tensor) { return result_[reef::at(tensor)]; }

  void bind_all(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i] >= 0 && b[i] >= 0 && bound(a[i]) < 0 && is_same(a[i], b[i])) bound(a[i]) = b[i];
    }
  }

  // How many operands are bound to the other operator's; -1: the two are not the same operator.
  int agreement(const ir::Operator& a, const ir::Operator& b) {
    if (a.type != b.type || a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size()) return -1;
    int count = 0;
    const auto compare = [&](const std::vector<std::int32_t>& x, const std::vector<std::int32_t>& y) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        if ((x[k] < 0) != (y[k] < 0)) return false;
        if (x[k] < 0) continue;
        if (bound(x[k]) >= 0 ? bound(x[k]) != y[k] : !is_same(x[k], y[k])) return false;
        count += bound(x[k]) >= 0 ? 1 : 0;
      }
      return true;
    };
    return compare(a.inputs, b.inputs) && compare(a.outputs, b.outputs) ? count : -1;
  }

  // From the model's borders over the operators that are left to the CPU, which both have.
  void follow_operators() {
    std::vector<bool> is_taken(theirs_.operators.size()), is_done(mine_.operators.size());
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t i = 0; i < mine_.operators.size(); ++i) {
        if (is_done[i] || darwinn::is_edge_tpu_op(mine_.operators[i])) continue;
        for (std::size_t j = 0; j < theirs_.operators.size() && !is_done[i]; ++j) {
          if (is_taken[j] || agreement(mine_.operators[i], theirs_.operators[j]) <= 0) continue;
          bind_all(mine_.operators[i].inputs, theirs_.operators[j].inputs);
          bind_all(mine_.operators[i].outputs, theirs_.operators[j].outputs);
          is_taken[j] = is_done[i] = changes = true;
        }
      }
    }
  }

  // Compilers keep tensors in their order and leave some out. Of several that look the same, the first or the last.
  void fill_by_order(bool from_the_end) {
    const std::size_t count = theirs_.tensors.size();
    const auto place = [&](std::size_t n) { return static_cast<std::int32_t>(from_the_end ? count - 1 - n : n); };
    std::size_t next = 0;  // counted from the end that is begun at
    for (std::size_t k = 0; k < mine_.tensors.size(); ++k) {
      const auto i = static_cast<std::int32_t>(from_the_end ? mine_.tensors.size() - 1 - k : k);
      std::size_t at = next;
      if (bound(i) < 0) {
        while (at < count && !is_same(i, place(at))) ++at;
        if (at == count) continue;
        bound(i) = place(at);
      } else {
        at = static_cast<std::size_t>(from_the_end ? place(0) - bound(i) : bound(i));
      }
      next = std::max(next, at + 1);
    }
  }

  const ir::Model &compiled_, &source_;
  const ir::Subgraph &mine_, &theirs_;
  std::vector<std::int32_t> result_;
};

// The operand of a custom operator that a layer is, as a tensor of the source; nullopt: there is none of this name.
std::optional<std::int32_t> operand_named(const std::string& layer, const ir::Subgraph& graph, const ir::Operator& op,
                                          bool is_output, const std::vector<std::int32_t>& to_source) {
  const auto name = [&](std::int32_t t) -> const std::string& { return graph.tensors[reef::at(t)].name; };
  for (const std::int32_t t : is_output ? op.outputs : op.inputs) {
    if (t < 0 || name(t) != layer || to_source[reef::at(t)] < 0) continue;
    return to_source[reef::at(t)];
  }
  if (!is_output) return std::nullopt;
  for (const std::int32_t t : op.inputs) {
    if (t < 0 || !graph.tensors[reef::at(t)].is_variable) continue;
    if (to_source[reef::at(t)] < 0) continue;
    if (name(t) + reference::kVariableOutputSuffix == layer) return -1 - to_source[reef::at(t)];
  }
  return std::nullopt;
}

std::optional<std::vector<VerifiedPart>> parts_by_alignment(const ir::Model& compiled, const ir::Model& source,
                                                            const std::vector<darwinn::Package>& packages,
                                                            bool from_the_end) {
  const std::vector<std::int32_t> to_source = Aligner(compiled, source).run(from_the_end);
  const ir::Subgraph& graph = compiled.subgraphs[0];
  std::vector<VerifiedPart> parts;
  std::size_t compiled_ops = 0;
  for (const ir::Operator& op : graph.operators) {
    if (!darwinn::is_edge_tpu_op(op)) continue;
    const darwinn::Package& package = packages[parts.size()];
    const darwinn::Executable* executable = package.find(darwinn::ExecutableType::kExecutionOnly);
    if (executable == nullptr) executable = package.find(darwinn::ExecutableType::kStandAlone);
    if (executable == nullptr) return std::nullopt;
    std::vector<std::int32_t> inputs, outputs;
    for (const bool is_output : {false, true}) {
      for (const darwinn::Layer& layer : is_output ? executable->output_layers : executable->input_layers) {
        const auto tensor = operand_named(layer.name, graph, op, is_output, to_source);
        if (!tensor) return std::nullopt;
        (is_output ? outputs : inputs).push_back(*tensor);
      }
    }
    parts.push_back(part_between(source, std::move(inputs), std::move(outputs)));
    if (parts.back().ops.empty()) return std::nullopt;
    compiled_ops += parts.back().ops.size();
  }
  // What is in no part must be what the compiled model leaves to the CPU.
  const std::size_t on_cpu = graph.operators.size() - parts.size();
  if (source.subgraphs[0].operators.size() != compiled_ops + on_cpu) return std::nullopt;
  return parts;
}

}  // namespace

Result<std::vector<VerifiedPart>> parts_of(const ir::Model& compiled, const ir::Model& source,
                                           const std::vector<darwinn::Package>& packages) {
  for (const bool from_the_end : {false, true}) {
    if (auto parts = parts_by_alignment(compiled, source, packages, from_the_end)) return *std::move(parts);
  }
  std::vector<VerifiedPart> parts;
  for (const darwinn::Package& package : packages) {
    REEF_ASSIGN_OR_RETURN(VerifiedPart part, part_of_package(source, package));
    REEF_REQUIRE(!part.ops.empty(), "the source has no operators between the tensors that part {} begins and ends with",
                 parts.size());
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace reef::compiler
