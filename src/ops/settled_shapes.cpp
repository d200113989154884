// SPDX-License-Identifier: Apache-2.0
#include "ops/settled_shapes.h"

#include <algorithm>

#include "ir/describe.h"
#include "ir/op.h"
#include "ir/verify.h"
#include "ops/inferred_shapes.h"
#include "ops/variable_shapes.h"

namespace reef::ops {
namespace {

void set_shape(ir::Tensor& tensor, const ir::Shape& shape) {
  tensor.shape = shape;
  if (tensor.shape_signature.size() != shape.dims().size()) tensor.shape_signature.clear();
  for (std::size_t i = 0; i < tensor.shape_signature.size(); ++i) {
    if (tensor.shape_signature[i] >= 0) tensor.shape_signature[i] = shape[static_cast<int>(i)];
  }
}

// Kernels that give floats whatever the file declares: each sets the type of its outputs where it is prepared (TFLite's
// detection_postprocess.cc, libcoral's posenet_decoder_op.cc). Converters that quantize everything declare uint8.
bool always_gives_floats(const ir::Operator& op) {
  return op.type == Op::TFLite_Detection_PostProcess || op.type == Op::PosenetDecoderOp;
}

// One subgraph, its operators in order.
class Settler {
 public:
  Settler(ir::Model& model, std::size_t subgraph, const VariableShapes& variables, SettledShapes& result)
      : model_(model),
        subgraph_(subgraph),
        graph_(model.subgraphs[subgraph]),
        variables_(variables),
        result_(result),
        is_open_(graph_.tensors.size()) {
    for (const std::int32_t input : graph_.inputs) is_open_[at(input)] = has_unknown_size(tensor(input));
  }

  void run() {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) settle(i);
  }
  const std::vector<bool>& is_open() const { return is_open_; }

 private:
  ir::Tensor& tensor(std::int32_t index) { return graph_.tensors[at(index)]; }

  void settle(std::size_t index) {
    const ir::Operator& op = graph_.operators[index];
    if (always_gives_floats(op)) give_floats(op);
    const bool reads_open = std::any_of(op.inputs.begin(), op.inputs.end(),
                                        [&](std::int32_t input) { return input >= 0 && is_open_[at(input)]; });
    if (reads_open) return leave_open(op);
    if (variables_.is_known(subgraph_, index)) return;
    const auto shapes =
        infer_shapes(model_, subgraph_, op, [&](std::int32_t id) { return ir::is_constant(model_, tensor(id)); });
    if (shapes.ok()) return compare(index, *shapes);
    if (shapes.status().code() == StatusCode::kDeferred) return leave_open(op);
    // Shapes that cannot be inferred here are as the file declares them; the CPU runtime checks them while running.
    if (shapes.status().code() != StatusCode::kUnsupported) refuse(index, shapes.status());
  }

  void give_floats(const ir::Operator& op) {
    for (const std::int32_t output : op.outputs) {
      if (tensor(output).type == ir::DataType::kFloat32 || tensor(output).is_variable) continue;
      tensor(output).type = ir::DataType::kFloat32;
      tensor(output).quantization = {};
    }
  }

  void leave_open(const ir::Operator& op) {
    for (const std::int32_t output : op.outputs) is_open_[at(output)] = true;
  }

  void compare(std::size_t index, const std::vector<ir::Shape>& shapes) {
    const ir::Operator& op = graph_.operators[index];
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      ir::Tensor& output = tensor(op.outputs[i]);
      if (output.shape == shapes[i]) continue;
      ShapeCorrection correction{static_cast<std::int32_t>(subgraph_), static_cast<std::int32_t>(index), op.outputs[i],
                                 output.shape, shapes[i]};
      if (output.is_variable) {
        return refuse(index,
                      invalid_input("output '{}' is a variable of shape {}, but the operator gives {}",
                                    ir::describe_name(output.name), output.shape.to_string(), shapes[i].to_string()));
      }
      set_shape(output, shapes[i]);
      result_.corrections.push_back(std::move(correction));
    }
  }

  // Other subgraphs get their inputs' shapes from whoever calls them, if anybody does.
  void refuse(std::size_t index, const Status& status) {
    leave_open(graph_.operators[index]);
    if (subgraph_ != 0 || !result_.refusal.ok()) return;
    const ir::Operator& op = graph_.operators[index];
    const std::string output =
        op.outputs.empty() ? "" : fmt::format(" ('{}')", ir::describe_name(tensor(op.outputs[0]).name));
    result_.refusal = invalid_input("op {} {}{}: {}", index, ir::describe_name(op.type), output, status.message());
  }

  ir::Model& model_;
  const std::size_t subgraph_;
  ir::Subgraph& graph_;
  const VariableShapes& variables_;
  SettledShapes& result_;
  std::vector<bool> is_open_;  // by tensor: its shape is not known before the model runs
};

}  // namespace

bool has_unknown_size(const ir::Tensor& tensor) {
  for (std::size_t i = 1; i < tensor.shape_signature.size(); ++i) {
    if (tensor.shape_signature[i] < 0 && tensor.shape[static_cast<int>(i)] <= 1) return true;
  }
  return false;
}

SettledShapes settle_shapes(ir::Model& model) {
  SettledShapes result;
  VariableShapes variables(model);
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (std::size_t i = 0; i < model.subgraphs.size(); ++i) {
      Settler settler(model, i, variables, result);
      settler.run();
      is_settled = !variables.distrust(i, settler.is_open()) && is_settled;
    }
  }
  // Scales along a dimension may not fit the size that it really has.
  if (!result.corrections.empty() && result.refusal.ok()) result.refusal = ir::verify(model);
  return result;
}

std::string describe(const ir::Model& model, const ShapeCorrection& correction) {
  const ir::Subgraph& graph = model.subgraphs[at(correction.subgraph)];
  return fmt::format("op {} {} gives '{}' shape {}, the file declares {}", correction.op,
                     ir::describe_name(graph.operators[at(correction.op)].type),
                     ir::describe_name(graph.tensors[at(correction.tensor)].name), correction.given.to_string(),
                     correction.declared.to_string());
}

}  // namespace reef::ops
