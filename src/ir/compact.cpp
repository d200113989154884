// SPDX-License-Identifier: Apache-2.0
#include "ir/compact.h"

#include <algorithm>
#include <span>

#include "base/at.h"

namespace reef::ir {
namespace {

// Calls visit(number) for every reference from outside of the list of tensors.
template <typename Visit>
void for_each_use(Subgraph& graph, std::span<Signature> signatures, Visit visit) {
  const auto visit_all = [&](std::vector<std::int32_t>& numbers) {
    std::for_each(numbers.begin(), numbers.end(), visit);
  };
  visit_all(graph.inputs);
  visit_all(graph.outputs);
  for (Operator& op : graph.operators) {
    visit_all(op.inputs);
    visit_all(op.outputs);
    visit_all(op.intermediates);
  }
  for (Signature& signature : signatures) {
    for (SignatureTensor& tensor : signature.inputs) visit(tensor.tensor);
    for (SignatureTensor& tensor : signature.outputs) visit(tensor.tensor);
  }
}

// The same for tensors that hold the scales and zero points of another: no operator names them.
template <typename Visit>
void for_each_parameter(Tensor& tensor, Visit visit) {
  const auto visit_both = [&](auto* details) {
    if (details == nullptr) return;
    visit(details->scales);
    visit(details->zero_points);
  };
  visit_both(std::get_if<BlockwiseQuantization>(&tensor.quantization.details));
  visit_both(std::get_if<MultiAxisQuantization>(&tensor.quantization.details));
}

template <typename Visit>
void for_each_buffer_use(Model& model, Visit visit) {
  for (Subgraph& graph : model.subgraphs) {
    for (Tensor& tensor : graph.tensors) visit(tensor.buffer);
  }
  for (Metadata& metadata : model.metadata) visit(metadata.buffer);
  for (std::int32_t& buffer : model.metadata_buffers) visit(buffer);
}

std::vector<std::int32_t> drop_tensors(Subgraph& graph, std::span<Signature> signatures) {
  std::vector<bool> keep(graph.tensors.size());
  std::vector<std::int32_t> open;
  const auto use = [&](std::int32_t tensor) {
    if (tensor < 0 || keep[at(tensor)]) return;
    keep[at(tensor)] = true;
    open.push_back(tensor);
  };
  for_each_use(graph, signatures, use);
  while (!open.empty()) {
    Tensor& tensor = graph.tensors[at(open.back())];
    open.pop_back();
    for_each_parameter(tensor, use);
  }
  const std::vector<std::int32_t> moved = squeeze(graph.tensors, keep);
  const auto renumber = [&](std::int32_t& tensor) {
    if (tensor >= 0) tensor = moved[at(tensor)];
  };
  for_each_use(graph, signatures, renumber);
  for (Tensor& tensor : graph.tensors) for_each_parameter(tensor, renumber);
  return moved;
}

}  // namespace

std::vector<std::int32_t> drop_unused_tensors(Subgraph& graph) { return drop_tensors(graph, {}); }

std::vector<std::int32_t> drop_unused_tensors(Model& model, std::size_t subgraph) {
  // Those of the subgraph, moved aside.
  std::vector<Signature> own;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < model.signatures.size(); ++i) {
    if (model.signatures[i].subgraph != static_cast<std::int64_t>(subgraph)) continue;
    places.push_back(i);
    own.push_back(std::move(model.signatures[i]));
  }
  std::vector<std::int32_t> moved = drop_tensors(model.subgraphs[subgraph], own);
  for (std::size_t i = 0; i < places.size(); ++i) model.signatures[places[i]] = std::move(own[i]);
  return moved;
}

void drop_unused_buffers(Model& model) {
  std::vector<bool> keep(model.buffers.size());
  if (!keep.empty()) keep[0] = true;
  for_each_buffer_use(model, [&](std::int32_t buffer) { keep[at(buffer)] = true; });
  const std::vector<std::int32_t> moved = squeeze(model.buffers, keep);
  for_each_buffer_use(model, [&](std::int32_t& buffer) { buffer = moved[at(buffer)]; });
}

}  // namespace reef::ir
