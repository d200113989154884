// SPDX-License-Identifier: Apache-2.0
// Shapes that the file leaves open (-1 in the shape signature) are fixed at the sizes that the file gives for them,
// which is what a runtime takes when nobody resizes the input: usually a batch of 1. The shapes that follow are
// inferred; where they depend on values, fold-constants may find those, and this rewrite comes again.
//
// An input whose other dimensions are open with a size of 1 is left alone: nobody means a picture of one pixel.
#include <algorithm>

#include "ir/verify.h"
#include "ops/inferred_shapes.h"
#include "passes/chip/rewrite_def.h"

namespace reef::rewrite {
namespace {

bool is_open(const ir::Tensor& tensor) {
  return std::any_of(tensor.shape_signature.begin(), tensor.shape_signature.end(),
                     [](std::int32_t dim) { return dim < 0; });
}

// Sizes that cannot be guessed: open, 1 in the file, and not the batch.
bool has_unknown_size(const ir::Tensor& tensor) {
  for (std::size_t i = 1; i < tensor.shape_signature.size(); ++i) {
    if (tensor.shape_signature[i] < 0 && tensor.shape[static_cast<int>(i)] <= 1) return true;
  }
  return false;
}

void fix(GraphEdit& edit, std::int32_t index, const ir::Shape& shape) {
  ir::Tensor& tensor = edit.change().subgraphs[0].tensors[static_cast<std::size_t>(index)];
  tensor.shape = shape;
  tensor.shape_signature.clear();
}

// Returns whether anything was open.
bool fix_inputs(GraphEdit& edit, std::string& names) {
  bool changed = false;
  const std::vector<std::int32_t> inputs = edit.graph().inputs;
  for (const std::int32_t input : inputs) {
    const ir::Tensor tensor = edit.tensor(input);
    if (!is_open(tensor)) continue;
    if (has_unknown_size(tensor)) {
      edit.note_left(-1,
                     fmt::format("input '{}' has open sizes {}, which could be fixed if they were known", tensor.name,
                                 ir::Shape(tensor.shape_signature).to_string()),
                     tensor.name, 0, "convert the model with a fixed input shape");
      continue;
    }
    names += fmt::format("{}'{}' {}", names.empty() ? "" : ", ", tensor.name, tensor.shape.to_string());
    fix(edit, input, tensor.shape);
    changed = true;
  }
  return changed;
}

// Fixes what follows from fixed shapes; the number of tensors that were open.
int fix_computed(GraphEdit& edit) {
  int count = 0;
  for (std::int32_t i = 0; i < edit.op_count(); ++i) {
    const ir::Operator& op = edit.op(i);
    const auto open = [&](std::int32_t tensor) { return tensor >= 0 && is_open(edit.tensor(tensor)); };
    if (std::none_of(op.outputs.begin(), op.outputs.end(), open)) continue;
    if (std::any_of(op.inputs.begin(), op.inputs.end(), open)) continue;
    const auto shapes =
        ops::inferred_shapes(edit.model(), 0, op, [&](std::int32_t id) { return edit.is_constant(id); });
    if (!shapes) continue;
    const std::vector<std::int32_t> outputs = op.outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      count += is_open(edit.tensor(outputs[k])) ? 1 : 0;
      fix(edit, outputs[k], (*shapes)[k]);
    }
  }
  return count;
}

bool whole(GraphEdit& edit) {
  const std::vector<ir::Tensor>& tensors = edit.graph().tensors;
  if (std::none_of(tensors.begin(), tensors.end(), is_open)) return false;
  const std::vector<ir::Tensor> before = tensors;
  std::string names;
  const bool inputs_changed = fix_inputs(edit, names);
  const int fixed = fix_computed(edit);
  if (!inputs_changed && fixed == 0) return false;
  if (!ir::verify(edit.model()).ok()) {  // as when scales along a dimension no longer match its size
    edit.change().subgraphs[0].tensors = before;
    return false;
  }
  std::string what = inputs_changed ? fmt::format("inputs {} fixed at the sizes in the file", names) : "";
  if (fixed > 0) what += fmt::format("{}{} computed shapes follow", what.empty() ? "" : "; ", fixed);
  edit.note_change(-1, std::move(what), "");
  return true;
}

}  // namespace

extern const Rewrite fixed_shapes_rewrite;
constinit const Rewrite fixed_shapes_rewrite = {
    .info = {.name = "fixed-shapes",
             .summary =
                 "Sizes left open (a batch of -1) are fixed at those in the file, where the other shapes follow.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .whole = whole};

}  // namespace reef::rewrite
