// SPDX-License-Identifier: Apache-2.0
// Shapes that the file leaves open (-1 in the shape signature) are fixed at the sizes that the file gives for them,
// which is what a runtime takes when nobody resizes the input: usually a batch of 1. The shapes that follow are
// inferred; where they depend on values, fold-constants may find those, and this pass comes again.
//
// An input whose other dimensions are open with a size of 1 is left alone: nobody means a picture of one pixel.
#include <algorithm>

#include "ops/inferred_shapes.h"
#include "ops/settled_shapes.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

std::vector<TensorId> open_inputs(const Graph& graph, bool is_known) {
  std::vector<TensorId> result;
  for (const TensorId input : graph.inputs()) {
    if (!graph.is_static(input) && ops::has_unknown_size(graph.tensor(input)) != is_known) result.push_back(input);
  }
  return result;
}

// Fixes the results of an operator whose operands are fixed; returns how many were open.
int fix_results(Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const auto open = [&](TensorId tensor) { return tensor >= 0 && !graph.is_static(tensor); };
  const auto count = static_cast<int>(std::count_if(op.outputs.begin(), op.outputs.end(), open));
  if (count == 0 || std::any_of(op.inputs.begin(), op.inputs.end(), open)) return 0;
  const auto shapes = ops::inferred_shapes(graph.model(), graph.subgraph(), op,
                                           [&](std::int32_t tensor) { return graph.is_constant(tensor); });
  if (!shapes) return 0;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {  // scales along a dimension must match its size
    const ir::Quantization& quantization = graph.tensor(op.outputs[i]).quantization;
    if (quantization.is_per_axis() && (*shapes)[i] != graph.shape(op.outputs[i])) return 0;
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    graph.change_tensor(op.outputs[i]).shape = (*shapes)[i];
    graph.change_tensor(op.outputs[i]).shape_signature.clear();
  }
  return count;
}

// Fixes `inputs` and what follows from them; returns how many computed tensors were open.
int fix(Graph& graph, const std::vector<TensorId>& inputs) {
  for (const TensorId input : inputs) graph.change_tensor(input).shape_signature.clear();
  int count = 0;
  // Operators of a file stand in their order; what passes have made is fixed already.
  for (OpId id = 0; id < graph.op_slots(); ++id) count += graph.is_alive(id) ? fix_results(graph, id) : 0;
  return count;
}

int fixed_shapes_whole(Graph& graph) {
  const std::vector<TensorId> inputs = open_inputs(graph, /*is_known=*/true);
  return static_cast<int>(inputs.size()) + fix(graph, inputs);
}

bool fixed_shapes_whole_on_chip(ChipGraph& graph) {
  for (const TensorId input : open_inputs(graph, /*is_known=*/false)) {
    const ir::Tensor& tensor = graph.tensor(input);
    graph.note_left(-1,
                    fmt::format("input '{}' has open sizes {}, which could be fixed if they were known", tensor.name,
                                ir::Shape(tensor.shape_signature).to_string()),
                    tensor.name, 0, "convert the model with a fixed input shape");
  }
  const std::vector<TensorId> inputs = open_inputs(graph, /*is_known=*/true);
  const int computed = fix(graph, inputs);
  if (inputs.empty() && computed == 0) return false;
  std::string what;
  for (const TensorId input : inputs) {
    what += fmt::format("{}'{}' {}", what.empty() ? "inputs " : ", ", graph.tensor(input).name,
                        graph.shape(input).to_string());
  }
  if (!inputs.empty()) what += " fixed at the sizes in the file";
  if (computed > 0) what += fmt::format("{}{} computed shapes follow", what.empty() ? "" : "; ", computed);
  graph.forget();
  graph.note_change(-1, std::move(what), "");
  return true;
}

}  // namespace

constinit const Pass fixed_shapes_shape_pass = {
    .name = "fixed-shapes",
    .summary = "Sizes left open (a batch of -1) are fixed at those in the file, where the other shapes follow.",
    .whole = fixed_shapes_whole,
    .whole_on_chip = fixed_shapes_whole_on_chip};

}  // namespace reef::passes
