// SPDX-License-Identifier: Apache-2.0
// Sweeping up: operators whose results nobody reads, tensors and buffers that nothing refers to.
#include <algorithm>

#include "ops/registry.h"
#include "rewrite/graph_edit.h"

namespace reef::rewrite {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Without an effect beside its outputs, as far as this version knows.
bool has_no_effect(const GraphEdit& edit, const ir::Operator& op) {
  const ops::OpDef* definition = ops::find_op(op);
  if (definition == nullptr || definition->has_state || op.type == "WHILE" || op.type == "IF") return false;
  return std::none_of(op.inputs.begin(), op.inputs.end(),
                      [&](std::int32_t input) { return input >= 0 && edit.tensor(input).is_variable; });
}

// Calls visit(index) for every reference to a tensor of subgraph 0.
template <typename Visit>
void for_each_tensor_reference(ir::Model& model, Visit visit) {
  ir::Subgraph& graph = model.subgraphs[0];
  const auto visit_all = [&](std::vector<std::int32_t>& indices) {
    for (std::int32_t& index : indices) visit(index);
  };
  visit_all(graph.inputs);
  visit_all(graph.outputs);
  for (ir::Operator& op : graph.operators) {
    visit_all(op.inputs);
    visit_all(op.outputs);
    visit_all(op.intermediates);
  }
  for (ir::Signature& signature : model.signatures) {
    if (signature.subgraph != 0) continue;
    for (ir::SignatureTensor& tensor : signature.inputs) visit(tensor.tensor);
    for (ir::SignatureTensor& tensor : signature.outputs) visit(tensor.tensor);
  }
  for (ir::Tensor& tensor : graph.tensors) {
    if (auto* blocks = std::get_if<ir::BlockwiseQuantization>(&tensor.quantization.details)) {
      visit(blocks->scales);
      visit(blocks->zero_points);
    } else if (auto* axes = std::get_if<ir::MultiAxisQuantization>(&tensor.quantization.details)) {
      visit(axes->scales);
      visit(axes->zero_points);
    }
  }
}

template <typename Visit>
void for_each_buffer_reference(ir::Model& model, Visit visit) {
  for (ir::Subgraph& graph : model.subgraphs) {
    for (ir::Tensor& tensor : graph.tensors) visit(tensor.buffer);
  }
  for (ir::Metadata& metadata : model.metadata) visit(metadata.buffer);
  for (std::int32_t& buffer : model.metadata_buffers) visit(buffer);
}

// Removes the elements that are not kept and returns the new index of each.
template <typename T>
std::vector<std::int32_t> squeeze(std::vector<T>& elements, const std::vector<bool>& keep) {
  std::vector<std::int32_t> moved(elements.size(), -1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!keep[i]) continue;
    moved[i] = static_cast<std::int32_t>(count);
    if (count != i) elements[count] = std::move(elements[i]);
    ++count;
  }
  elements.resize(count);
  return moved;
}

}  // namespace

void GraphEdit::remove_dead() {
  ir::Subgraph& graph = model_->subgraphs[0];
  std::vector<bool> is_read(graph.tensors.size(), false), keep(graph.operators.size(), false);
  const auto read = [&](std::int32_t tensor) {
    if (tensor >= 0) is_read[at(tensor)] = true;
  };
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_graph_output(static_cast<std::int32_t>(i))) is_read[i] = true;
  }
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const ir::Operator& op = graph.operators[i];
    keep[i] = !has_no_effect(*this, op) || std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t output) {
      return output >= 0 && is_read[at(output)];
    });
    if (keep[i]) std::for_each(op.inputs.begin(), op.inputs.end(), read);
  }
  if (std::all_of(keep.begin(), keep.end(), [](bool kept) { return kept; })) return;
  squeeze(graph.operators, keep);
  squeeze(origins_, keep);
  std::optional<std::vector<bool>> fits = std::move(fits_);
  forget();
  if (!fits) return;
  squeeze(*fits, keep);
  fits_ = std::move(fits);
}

void GraphEdit::compact() {
  ir::Model& model = change();
  ir::Subgraph& graph = model.subgraphs[0];
  std::vector<bool> keep(graph.tensors.size(), false);
  for_each_tensor_reference(model, [&](std::int32_t& tensor) {
    if (tensor >= 0 && at(tensor) < keep.size()) keep[at(tensor)] = true;
  });
  const std::vector<std::int32_t> moved_tensors = squeeze(graph.tensors, keep);
  for_each_tensor_reference(model, [&](std::int32_t& tensor) {
    if (tensor >= 0 && at(tensor) < moved_tensors.size()) tensor = moved_tensors[at(tensor)];
  });
  std::vector<bool> keep_buffers(model.buffers.size(), false);
  if (!keep_buffers.empty()) keep_buffers[0] = true;
  for_each_buffer_reference(model, [&](std::int32_t& buffer) { keep_buffers[at(buffer)] = true; });
  const std::vector<std::int32_t> moved_buffers = squeeze(model.buffers, keep_buffers);
  for_each_buffer_reference(model, [&](std::int32_t& buffer) { buffer = moved_buffers[at(buffer)]; });
}

}  // namespace reef::rewrite
