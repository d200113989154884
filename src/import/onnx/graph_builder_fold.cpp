// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: what constants alone lead to is computed, and what nobody needs removed.
#include <algorithm>

#include "execute/cpu/interpreter.h"
#include "import/onnx/graph_builder.h"
#include "import/onnx/open_shapes.h"
#include "ir/compact.h"
#include "ir/describe.h"
#include "ir/verify.h"

namespace reef::import {

// A model of the operators that lead from constants to `target`.
ir::Model GraphBuilder::cone_of(Id target) const {
  const ir::Model& model = model_;
  const ir::Subgraph& graph = model.subgraphs[0];
  std::set<std::int32_t> operators, tensors = {target};
  std::vector<std::int32_t> open = {target};
  while (!open.empty()) {
    const std::int32_t id = open.back();
    open.pop_back();
    if (ir::is_constant(model, graph.tensors[static_cast<std::size_t>(id)])) continue;
    const std::int32_t producer = producers_[static_cast<std::size_t>(id)];
    if (producer < 0 || !operators.insert(producer).second) continue;
    const ir::Operator& op = graph.operators[static_cast<std::size_t>(producer)];
    for (const std::int32_t output : op.outputs) tensors.insert(output);
    for (const std::int32_t input : op.inputs) {
      if (input < 0) continue;
      open.push_back(input);
      tensors.insert(input);
    }
  }
  ir::Model result;
  result.buffers.emplace_back();
  result.subgraphs.emplace_back();
  ir::Subgraph& cone = result.subgraphs[0];
  std::vector<std::int32_t> place(graph.tensors.size(), -1);
  for (const std::int32_t id : tensors) {
    ir::Tensor tensor = graph.tensors[static_cast<std::size_t>(id)];
    place[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(cone.tensors.size());
    // A result that was computed before, beside which another one is wanted, is computed again.
    const std::int32_t producer = producers_[static_cast<std::size_t>(id)];
    if (producer >= 0 && operators.count(producer) > 0) {
      tensor.buffer = 0;
    } else if (ir::is_constant(model, tensor)) {
      result.buffers.push_back(model.buffers[static_cast<std::size_t>(tensor.buffer)]);
      Bytes& data = result.buffers.back().data;
      // Kernels want their operands aligned.
      if (reinterpret_cast<std::uintptr_t>(data.data()) % 16 != 0) data = Bytes::copy_of(data.span());
      tensor.buffer = static_cast<std::int32_t>(result.buffers.size() - 1);
    }
    cone.tensors.push_back(std::move(tensor));
  }
  for (const std::int32_t index : operators) {
    ir::Operator op = graph.operators[static_cast<std::size_t>(index)];
    for (std::int32_t& id : op.inputs) id = id < 0 ? id : place[static_cast<std::size_t>(id)];
    for (std::int32_t& id : op.outputs) id = place[static_cast<std::size_t>(id)];
    cone.operators.push_back(std::move(op));
  }
  cone.outputs = {place[static_cast<std::size_t>(target)]};
  return result;
}

Status GraphBuilder::evaluate(Id id) {
  if (is_constant(id) || kept_values_.count(id) > 0) return ok_status();
  ir::Model cone = cone_of(id);
  const std::string what = ir::describe_name(tensor(id).name);
  REEF_RETURN_IF_ERROR(ir::verify(cone).in(what));
  cpu::InterpreterOptions options;
  options.max_memory_bytes = 4 * fold_limit_;
  options.time_limit_seconds = 60;
  options.tflite_release = ops::TfliteRelease::kCurrent;
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(cone)), options);
  if (!interpreter.ok()) return interpreter.status().in(what);
  cpu::Interpreter& run = **interpreter;
  REEF_RETURN_IF_ERROR(run.prepare().in(what));
  REEF_RETURN_IF_ERROR(run.invoke().in(what));
  const ops::Tensor& output = run.output(0);
  if (static_cast<std::int64_t>(output.bytes) > fold_limit_) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("'{}' is a constant of {} bytes once computed, which is too large", what, output.bytes));
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(output.data);
  if (is_kept(id)) {
    kept_values_[id] = Bytes::copy_of({data, output.bytes});
    return ok_status();
  }
  ir::Buffer buffer;
  buffer.is_empty_constant = output.bytes == 0;
  buffer.data = Bytes::copy_of({data, output.bytes});
  model_.buffers.push_back(std::move(buffer));
  ir::Tensor& tensor = graph().tensors[static_cast<std::size_t>(id)];
  tensor.shape = output.shape;
  tensor.shape_signature.clear();
  tensor.buffer = static_cast<std::int32_t>(model_.buffers.size() - 1);
  shaped_[static_cast<std::size_t>(id)] = 1;
  return ok_status();
}
Status GraphBuilder::finish() {
  REEF_RETURN_IF_ERROR(status_);
  const auto is_folded = [&](std::int32_t index) {
    const ir::Operator& op = graph().operators[static_cast<std::size_t>(index)];
    return kept_[static_cast<std::size_t>(index)] == 0 && !op.outputs.empty() && is_known(Id{op.outputs[0]});
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
    ir::Buffer& buffer = model_.buffers[static_cast<std::size_t>(tensor.buffer)];
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
  for (const std::int32_t id : graph().outputs) is_needed[static_cast<std::size_t>(id)] = true;
  std::vector<bool> keep_op(graph().operators.size(), false);
  for (std::size_t i = graph().operators.size(); i-- > 0;) {
    const ir::Operator& op = graph().operators[i];
    const bool is_used = std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::int32_t id) {
      return is_needed[static_cast<std::size_t>(id)] && !is_constant(Id{id});
    });
    if (!is_used) continue;
    keep_op[i] = true;
    for (const std::int32_t id : op.inputs) {
      if (id >= 0) is_needed[static_cast<std::size_t>(id)] = true;
    }
  }
  const std::vector<std::int32_t> moved = ir::squeeze(graph().operators, keep_op);
  (void)ir::squeeze(kept_, keep_op);
  for (std::int32_t& index : producers_) index = index < 0 ? -1 : moved[static_cast<std::size_t>(index)];
}
}  // namespace reef::import
