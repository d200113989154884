// SPDX-License-Identifier: Apache-2.0
// Sizes that the file leaves open (-1 in the shape signature) are fixed at those it gives for them, which is what a
// runtime takes when nobody resizes the input; shapes that follow from them are inferred.
//
// An input with open sizes of 1 other than its first, the batch, is left alone: nobody means a picture of one pixel.
#include <algorithm>

#include "ops/inferred_shapes.h"
#include "passes/float/pass.h"

namespace reef::simplify {
namespace {

bool is_open(const ir::Tensor& tensor) {
  return std::any_of(tensor.shape_signature.begin(), tensor.shape_signature.end(),
                     [](std::int32_t dim) { return dim < 0; });
}

bool is_unknown(const ir::Tensor& tensor) {
  for (std::size_t i = 1; i < tensor.shape_signature.size(); ++i) {
    if (tensor.shape_signature[i] < 0 && tensor.shape[static_cast<int>(i)] <= 1) return true;
  }
  return false;
}

bool fix_results(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const auto open = [&](TensorId tensor) { return tensor >= 0 && is_open(graph.tensor(tensor)); };
  if (std::none_of(op.outputs.begin(), op.outputs.end(), open)) return false;
  if (std::any_of(op.inputs.begin(), op.inputs.end(), open)) return false;
  const auto shapes = ops::inferred_shapes(graph.model(), graph.subgraph(), op,
                                           [&](std::int32_t tensor) { return graph.is_constant(tensor); });
  if (!shapes) return false;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::Quantization& quantization = graph.tensor(op.outputs[i]).quantization;
    if (quantization.is_per_axis() && (*shapes)[i] != graph.shape(op.outputs[i])) return false;
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    graph.change_tensor(op.outputs[i]).shape = (*shapes)[i];
    graph.change_tensor(op.outputs[i]).shape_signature.clear();
  }
  return true;
}

int whole(Graph& graph) {
  int changes = 0;
  for (const TensorId input : graph.inputs()) {
    ir::Tensor& tensor = graph.change_tensor(input);
    if (!is_open(tensor) || is_unknown(tensor)) continue;
    tensor.shape_signature.clear();
    ++changes;
  }
  // Operators of a file stand in their order; what passes have made is fixed already.
  for (OpId id = 0; id < graph.op_slots(); ++id) {
    if (graph.is_alive(id) && fix_results(graph, id)) ++changes;
  }
  return changes;
}

}  // namespace

extern const Pass fixed_shapes_pass;
constinit const Pass fixed_shapes_pass = {
    .name = "fixed-shapes",
    .summary = "Sizes left open (a batch of -1) are fixed at those in the file, where the other shapes follow.",
    .whole = whole};

}  // namespace reef::simplify
