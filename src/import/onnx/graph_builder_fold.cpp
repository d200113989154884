// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: what constants alone lead to is computed, and what nobody needs removed.
#include <algorithm>

#include "import/onnx/graph_builder.h"
#include "import/onnx/open_shapes.h"
#include "ir/compact.h"
#include "ir/describe.h"
#include "ir/excerpt.h"
#include "ir/verify.h"

namespace reef::import {

// The operators that lead from constants to `target`, in execution order.
std::vector<ir::Operator> GraphBuilder::cone_of(Id target) const {
  std::set<std::int32_t> operators;
  std::vector<std::int32_t> open = {target};
  while (!open.empty()) {
    const Id id{open.back()};
    open.pop_back();
    if (id < 0 || is_constant(id) || producer(id) < 0 || !operators.insert(producer(id)).second) continue;
    const std::vector<std::int32_t>& inputs = op(producer(id)).inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  std::vector<ir::Operator> result;
  for (const std::int32_t index : operators) result.push_back(op(index));
  return result;
}

Status GraphBuilder::evaluate(Id id) {
  if (is_constant(id) || kept_values_.count(id) > 0) return ok_status();
  const std::int32_t target = id;
  ir::Model cone = ir::excerpt(model_, cone_of(id), {&target, 1});
  const std::string what = ir::describe_name(tensor(id).name);
  REEF_RETURN_IF_ERROR(ir::verify(cone).in(what));
  auto values = evaluator_(std::move(cone));
  if (!values.ok()) return values.status().in(what);
  cpu::Value& output = (*values)[0];
  if (static_cast<std::int64_t>(output.bytes.size()) > kFoldLimit) {
    return make_error(StatusCode::kResourceExhausted,
                      "'{}' is a constant of {} bytes once computed, which is too large", what, output.bytes.size());
  }
  if (is_kept(id)) {
    kept_values_[id] = Bytes(std::move(output.bytes));
    return ok_status();
  }
  ir::Buffer buffer;
  buffer.is_empty_constant = output.bytes.empty();
  buffer.data = Bytes(std::move(output.bytes));
  model_.buffers.push_back(std::move(buffer));
  ir::Tensor& tensor = graph().tensors[at(id)];
  tensor.shape = output.shape;
  tensor.shape_signature.clear();
  tensor.buffer = static_cast<std::int32_t>(model_.buffers.size() - 1);
  shaped_[at(id)] = 1;
  return ok_status();
}

Status GraphBuilder::finish() {
  REEF_RETURN_IF_ERROR(status_);
  const auto is_folded = [&](std::int32_t index) {
    const ir::Operator& op = graph().operators[at(index)];
    return kept_[at(index)] == 0 && !op.outputs.empty() && is_known(Id{op.outputs[0]});
  };
  const auto fold = [&](Id id) -> Status {
    if (id < 0 || is_constant(id) || producer(id) < 0 || !is_folded(producer(id))) return ok_status();
    return evaluate(id);
  };
  const auto count = static_cast<std::int32_t>(graph().operators.size());
  remove_unused();
  for (std::int32_t i = 0; i < count && i < static_cast<std::int32_t>(graph().operators.size()); ++i) {
    if (is_folded(i)) continue;
    for (const std::int32_t id : std::vector<std::int32_t>(op(i).inputs)) REEF_RETURN_IF_ERROR(fold(Id{id}));
  }
  for (const std::int32_t id : graph().outputs) REEF_RETURN_IF_ERROR(fold(Id{id}));
  remove_unused();
  const std::vector<std::int32_t> moved = ir::drop_unused_tensors(graph());
  (void)moved;
  for (const ir::Tensor& tensor : graph().tensors) {
    if (borrowed_.count(tensor.buffer) == 0) continue;
    ir::Buffer& buffer = model_.buffers[at(tensor.buffer)];
    buffer.data = Bytes::copy_of(buffer.data.span());
    borrowed_.erase(tensor.buffer);
  }
  kept_values_.clear();
  ir::drop_unused_buffers(model_);
  for (ir::Tensor& tensor : graph().tensors) {
    if (tensor.shape == stand_in_shape()) tensor.shape = shape_of_signature(tensor.shape_signature);
  }
  return ok_status();
}

void GraphBuilder::remove_unused() {
  std::vector<bool> is_needed(graph().tensors.size(), false);
  for (const std::int32_t id : graph().outputs) is_needed[at(id)] = true;
  std::vector<bool> keep_op(graph().operators.size(), false);
  for (std::size_t i = graph().operators.size(); i-- > 0;) {
    const ir::Operator& op = graph().operators[i];
    const bool is_used = std::any_of(op.outputs.begin(), op.outputs.end(),
                                     [&](std::int32_t id) { return is_needed[at(id)] && !is_constant(Id{id}); });
    if (!is_used) continue;
    keep_op[i] = true;
    for (const std::int32_t id : op.inputs) {
      if (id >= 0) is_needed[at(id)] = true;
    }
  }
  const std::vector<std::int32_t> moved = ir::squeeze(graph().operators, keep_op);
  (void)ir::squeeze(kept_, keep_op);
  for (std::int32_t& index : producers_) index = index < 0 ? -1 : moved[at(index)];
}
}  // namespace reef::import
