// SPDX-License-Identifier: Apache-2.0
// Taking a model apart at its embedding, and putting the parts together.
#include <algorithm>
#include <map>
#include <set>

#include "formats/darwinn/reader.h"
#include "ir/compact.h"
#include "ir/excerpt.h"
#include "ir/verify.h"
#include "learn/head.h"
#include "learn/metadata.h"
#include "ops/dependencies.h"

namespace reef::learn {
namespace {

// Operators that `tensor` is computed from, by number.
std::set<std::size_t> ancestors(const ir::Subgraph& graph, std::int32_t tensor) {
  std::set<std::int32_t> wanted = {tensor};
  std::set<std::size_t> result;
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    const bool is_wanted =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t t) { return wanted.contains(t); });
    // An operator without results is there for what it does (CALL_ONCE, ASSIGN_VARIABLE).
    if (!is_wanted && !op.outputs.empty()) continue;
    result.insert(i);
    wanted.insert(op.inputs.begin(), op.inputs.end());
  }
  return result;
}

std::string fresh_name(const ir::Subgraph& graph, const std::string& wished) {
  const auto is_taken = [&](const std::string& name) {
    return std::any_of(graph.tensors.begin(), graph.tensors.end(), [&](const auto& t) { return t.name == name; });
  };
  std::string name = wished;
  for (int i = 1; is_taken(name); ++i) name = fmt::format("{}_{}", wished, i);
  return name;
}

Status check_seam(const ir::Tensor& from, const ir::Tensor& to) {
  REEF_REQUIRE(from.type == to.type && from.shape == to.shape,
               "the extractor gives {} {}, the head takes {} {}: they do not belong together", ir::type_name(from.type),
               from.shape.to_string(), ir::type_name(to.type), to.shape.to_string());
  REEF_REQUIRE(
      from.quantization.scale == to.quantization.scale && from.quantization.zero_point == to.quantization.zero_point,
      "the extractor's output '{}' and the head's input '{}' are quantized differently: they do not belong together",
      from.name, to.name);
  return ok_status();
}

// The output of `extractor` that each input of `head` reads, by tensor number: the one of the same name, or, where
// names differ, the one in the same place.
Result<std::map<std::int32_t, std::int32_t>> seams(const ir::Subgraph& extractor, const ir::Subgraph& head) {
  std::map<std::int32_t, std::int32_t> found;
  for (std::size_t i = 0; i < head.inputs.size(); ++i) {
    const ir::Tensor& input = head.tensors[at(head.inputs[i])];
    auto output = std::find_if(extractor.outputs.begin(), extractor.outputs.end(),
                               [&](std::int32_t t) { return extractor.tensors[at(t)].name == input.name; });
    if (output == extractor.outputs.end()) {
      REEF_REQUIRE(
          head.inputs.size() == extractor.outputs.size(),
          "no output of the first model is named '{}', which the second one reads, and the first has {} outputs "
          "for {} inputs",
          input.name, extractor.outputs.size(), head.inputs.size());
      output = extractor.outputs.begin() + static_cast<std::ptrdiff_t>(i);
    }
    REEF_RETURN_IF_ERROR(check_seam(extractor.tensors[at(*output)], input));
    found[head.inputs[i]] = *output;
  }
  return found;
}

// Numbers of the head's tensors in the joined graph.
std::vector<std::int32_t> take_tensors(const ir::Model& head, const std::map<std::int32_t, std::int32_t>& seams,
                                       ir::Model& result) {
  const ir::Subgraph& from = head.subgraphs[0];
  ir::Subgraph& to = result.subgraphs[0];
  std::vector<std::int32_t> numbers;
  for (std::size_t i = 0; i < from.tensors.size(); ++i) {
    if (const auto seam = seams.find(static_cast<std::int32_t>(i)); seam != seams.end()) {
      numbers.push_back(seam->second);
      continue;
    }
    ir::Tensor tensor = from.tensors[i];
    tensor.name = fresh_name(to, tensor.name);
    if (tensor.buffer != 0) {
      result.buffers.push_back(head.buffers[at(tensor.buffer)]);
      tensor.buffer = static_cast<std::int32_t>(result.buffers.size()) - 1;
    }
    numbers.push_back(static_cast<std::int32_t>(to.tensors.size()));
    to.tensors.push_back(std::move(tensor));
  }
  return numbers;
}

bool is_compiled(const ir::Model& model) {
  const auto& operators = model.subgraphs[0].operators;
  return std::any_of(operators.begin(), operators.end(),
                     [](const ir::Operator& op) { return darwinn::is_edge_tpu_op(op); });
}

void point_signatures_at(ir::Model& model, std::int32_t output, const std::string& name) {
  for (ir::Signature& signature : model.signatures) {
    if (signature.subgraph == 0) signature.outputs = {{name, output}};
  }
}

}  // namespace

Result<ir::Model> extractor_of(const ir::Model& model, const Head& head) {
  ir::Model result = model;
  ir::Subgraph& graph = result.subgraphs[0];
  if (graph.outputs == std::vector<std::int32_t>{head.embedding}) return result;
  const std::set<std::size_t> kept = ancestors(graph, head.embedding);
  REEF_REQUIRE(!kept.empty(), "nothing computes the embedding '{}'", graph.tensors[at(head.embedding)].name);
  std::vector<bool> keep(graph.operators.size());
  for (const std::size_t i : kept) keep[i] = true;
  ir::squeeze(graph.operators, keep);
  graph.outputs = {head.embedding};
  point_signatures_at(result, head.embedding, "embedding");
  if (head.kind != HeadKind::kNone) drop_learning(result);
  ir::drop_unused_tensors(result, 0);
  ir::drop_unused_buffers(result);
  REEF_RETURN_IF_ERROR(ir::verify(result));
  return result;
}

Result<SplitModel> split(const ir::Model& model, const Head& head) {
  SplitModel parts;
  REEF_ASSIGN_OR_RETURN(parts.extractor, extractor_of(model, head));
  const ir::Subgraph& graph = model.subgraphs[0];
  const std::set<std::size_t> below = ancestors(graph, head.embedding);
  const ops::Dependencies order(model);
  for (const ops::Dependencies::Tie& tie : order.ties()) {
    REEF_REQUIRE(below.contains(at(tie.earlier)) == below.contains(at(tie.later)),
                 "operators {} and {} share a variable: the model cannot be cut between them", tie.earlier, tie.later);
  }
  std::vector<ir::Operator> above;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!below.contains(i)) above.push_back(graph.operators[i]);
  }
  if (above.empty()) return parts;
  parts.head = ir::excerpt(model, above, graph.outputs);
  parts.head.version = model.version;
  parts.head.subgraphs[0].name = "head";
  REEF_REQUIRE(parts.head.subgraphs[0].inputs.size() == 1,
               "what follows '{}' also reads other tensors: the model cannot be cut there",
               graph.tensors[at(head.embedding)].name);
  copy_learning(model, parts.head);
  REEF_RETURN_IF_ERROR(ir::verify(parts.head));
  return parts;
}

Result<ir::Model> join(const ir::Model& extractor, const ir::Model& head) {
  REEF_REQUIRE(!extractor.subgraphs.empty() && !extractor.subgraphs[0].outputs.empty(),
               "the first model has no outputs");
  REEF_REQUIRE(head.subgraphs.size() == 1 && !head.subgraphs[0].inputs.empty(),
               "the second model must be one graph with inputs");
  REEF_REQUIRE(!is_compiled(extractor) || !is_compiled(head),
               "both models are compiled: on one chip the parameters of one could overwrite the other's. Join them "
               "first and compile the whole");
  const ir::Subgraph& from = head.subgraphs[0];
  ir::Model result = extractor;
  ir::Subgraph& to = result.subgraphs[0];
  REEF_ASSIGN_OR_RETURN(const auto joints, seams(to, from));
  if (result.buffers.empty()) result.buffers.resize(1);
  const std::vector<std::int32_t> numbers = take_tensors(head, joints, result);
  const auto renumber = [&](std::vector<std::int32_t>& tensors) {
    for (std::int32_t& tensor : tensors) tensor = tensor < 0 ? tensor : numbers[at(tensor)];
  };
  for (ir::Operator op : from.operators) {
    renumber(op.inputs);
    renumber(op.outputs);
    renumber(op.intermediates);
    op.debug_metadata_index = -1;
    to.operators.push_back(std::move(op));
  }
  to.outputs = from.outputs;
  renumber(to.outputs);
  if (to.outputs.size() == 1)
    point_signatures_at(result, to.outputs[0], "scores");
  else
    result.signatures.clear();
  drop_learning(result);
  copy_learning(head, result);
  REEF_RETURN_IF_ERROR(ir::verify(result));
  return result;
}

}  // namespace reef::learn
