// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/batch_rules.h"

#include <algorithm>

#include "ops/registry.h"

namespace reef::passes {
namespace {

bool is_batched(const ChipGraph& edit, std::int32_t tensor, std::int32_t batch) {
  const ir::Shape& shape = edit.shape(tensor);
  return shape.rank() >= 2 && shape[0] == batch && ir::is_integer_8(edit.tensor(tensor).type) &&
         !edit.tensor(tensor).is_variable;
}

std::optional<std::int64_t> axis_in(std::int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return {};
  return axis;
}

// Constants say the same of every image.
bool has_fitting_constants(const ChipGraph& edit, const ir::Operator& op, std::int32_t batch) {
  const int rank = edit.shape(op.outputs[0]).rank();
  if (ops::form_of(op) == ops::Form::kBinary) {
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t input) {
      const ir::Shape& shape = edit.shape(input);
      return !edit.is_constant(input) || shape.rank() < rank || (shape.rank() == rank && shape[0] == 1);
    });
  }
  if (ops::form_of(op) == ops::Form::kReduction) {
    const auto axes = edit.ints(op.inputs[1]);
    const int in_rank = edit.shape(op.inputs[0]).rank();
    return axes && std::all_of(axes->begin(), axes->end(),
                               [&](std::int64_t axis) { return axis_in(axis, in_rank).value_or(0) != 0; });
  }
  if (op.type == Op::TRANSPOSE) {
    const auto order = edit.ints(op.inputs[1]);
    return order && !order->empty() && (*order)[0] == 0;
  }
  if (op.type == Op::PAD) {
    const auto paddings = edit.ints(op.inputs[1]);
    return paddings && paddings->size() >= 2 && (*paddings)[0] == 0 && (*paddings)[1] == 0;
  }
  if (op.type == Op::FULLY_CONNECTED) {
    // Flattening more dimensions than the batch would mix images; the images' rows must be whole.
    const ir::Shape &x = edit.shape(op.inputs[0]), &weights = edit.shape(op.inputs[1]);
    return weights.rank() == 2 && weights[1] > 0 && x.product(1, x.rank()) % weights[1] == 0 &&
           edit.shape(op.outputs[0])[0] == batch &&
           (x.rank() == 2 || op.attributes.get_bool("keep_num_dims") || x.product(1, x.rank()) == weights[1]);
  }
  return true;
}

bool cuts_no_batch(const ChipGraph& edit, const ir::Operator& op, std::int32_t batch) {
  const int rank = edit.shape(op.outputs[0]).rank();
  if (op.type == Op::CONCATENATION) return axis_in(op.attributes.get_int("axis"), rank).value_or(0) != 0;
  if (op.type == Op::SPLIT) {
    const auto axis = edit.ints(op.inputs[0]);
    return axis && axis->size() == 1 && axis_in((*axis)[0], rank).value_or(0) != 0;
  }
  if (op.type == Op::SPLIT_V) {
    const auto axis = edit.ints(op.inputs[2]);
    return axis && axis->size() == 1 && axis_in((*axis)[0], rank).value_or(0) != 0;
  }
  if (op.type == Op::STRIDED_SLICE) {
    const auto begins = edit.ints(op.inputs[1]), ends = edit.ints(op.inputs[2]), strides = edit.ints(op.inputs[3]);
    const ir::Attributes& attributes = op.attributes;
    if (!begins || !ends || !strides || begins->empty() || ends->size() != begins->size()) return false;
    if (attributes.get_int("ellipsis_mask") != 0 || attributes.get_int("new_axis_mask") != 0) return false;
    if ((attributes.get_int("shrink_axis_mask") & 1) != 0 || strides->empty() || (*strides)[0] != 1) return false;
    const bool from_start = (*begins)[0] == 0 || (attributes.get_int("begin_mask") & 1) != 0;
    return from_start && ((*ends)[0] >= batch || (attributes.get_int("end_mask") & 1) != 0);
  }
  return op.type == Op::PAD || op.type == Op::TRANSPOSE;
}

// Constants that are not weights or operands but parameters.
bool takes_constants(const ir::Operator& op, std::size_t input) {
  return input > 0 || op.type == Op::SPLIT || op.type == Op::TRANSPOSE_CONV || ops::form_of(op) == ops::Form::kBinary;
}

}  // namespace

bool is_batch_parallel(const ChipGraph& edit, std::int32_t index, std::int32_t batch) {
  const ir::Operator& op = edit.op(index);
  if (!edit.is_sound(index) || op.inputs.empty() || op.outputs.empty()) return false;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::int32_t input = op.inputs[i];
    if (input < 0) continue;
    if (edit.is_constant(input) ? !takes_constants(op, i) : !is_batched(edit, input, batch)) return false;
  }
  for (const std::int32_t output : op.outputs) {
    if (!is_batched(edit, output, batch)) return false;
  }
  if (ops::has_same_bytes(op)) return true;  // both sides begin with the batch, in the same order of elements
  const ops::Form form = ops::form_of(op);
  const bool is_plain =
      ops::has_trait(op, ops::Trait::kPerImage) || form == ops::Form::kUnary || form == ops::Form::kBinary;
  if (is_plain || form == ops::Form::kReduction) return has_fitting_constants(edit, op, batch);
  return cuts_no_batch(edit, op, batch) && has_fitting_constants(edit, op, batch);
}

void add_for_one_image(ChipGraph& edit, OpList& list, const ir::Operator& op, std::vector<std::int32_t> inputs,
                       std::vector<std::int32_t> outputs) {
  if (ops::has_same_bytes(op)) {
    list.reshape(inputs[0], edit.shape(outputs[0]), outputs[0]);
    return;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0) inputs[i] = op.inputs[i];
  }
  if (op.type == Op::TRANSPOSE_CONV) {
    const ir::Shape shape = edit.shape(outputs[0]);
    inputs[0] = list.int_vector(std::vector<std::int64_t>(shape.begin(), shape.end()));
  }
  if (op.type == Op::STRIDED_SLICE) {
    std::vector<std::int64_t> begins = *edit.ints(op.inputs[1]), ends = *edit.ints(op.inputs[2]);
    begins[0] = 0;
    ends[0] = 1;
    inputs[1] = list.int_vector(begins);
    inputs[2] = list.int_vector(ends);
  }
  list.add(op.type, op.options_type, op.attributes, std::move(inputs), std::move(outputs),
           edit.tensor(op.outputs[0]).type);
  list.last().version = op.version;
}

}  // namespace reef::passes
