// SPDX-License-Identifier: Apache-2.0
// PAD with zeros in front of a convolution is the convolution's own padding where it pads just as SAME would. Exact.

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool pads_zeros(const Graph& graph, OpId pad) {
  if (graph.is(pad, Op::PAD)) return true;
  return graph.is(pad, Op::PADV2) && graph.uniform(graph.op(pad).inputs[2]) == 0.0f;
}

bool pad_into_layer_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::CONV_2D) && !graph.is(id, Op::DEPTHWISE_CONV_2D)) return false;
  const ir::Operator& op = graph.op(id);
  if (op.attributes.get_enum("padding") != "VALID") return false;
  const OpId pad = graph.producer(op.inputs[0]);
  if (pad == kNone || !graph.is_sound(pad) || !pads_zeros(graph, pad)) return false;
  const TensorId x = graph.op(pad).inputs[0];
  const auto amounts = graph.ints(graph.op(pad).inputs[1]);
  const ir::Shape& shape = graph.shape(x);
  const ir::Shape& weights = graph.shape(op.inputs[1]);
  if (!amounts || amounts->size() != 8 || shape.rank() != 4 || weights.rank() != 4) return false;
  if (graph.tensor(x).quantization.scale != graph.tensor(op.inputs[0]).quantization.scale ||
      graph.tensor(x).quantization.zero_point != graph.tensor(op.inputs[0]).quantization.zero_point) {
    return false;
  }
  if ((*amounts)[0] != 0 || (*amounts)[1] != 0 || (*amounts)[6] != 0 || (*amounts)[7] != 0) return false;
  for (const int axis : {1, 2}) {
    const std::int64_t stride = op.attributes.get_int(axis == 1 ? "stride_h" : "stride_w", 1);
    const std::int64_t dilation = op.attributes.get_int(axis == 1 ? "dilation_h_factor" : "dilation_w_factor", 1);
    if (stride < 1 || dilation < 1) return false;
    const AxisPadding same = same_padding(shape[axis], weights[axis], stride, dilation);
    const auto k = static_cast<std::size_t>(axis) * 2;
    const std::int64_t output = (shape[axis] + stride - 1) / stride;
    if ((*amounts)[k] != same.before || output != graph.shape(op.outputs[0])[axis]) return false;
    // More behind than SAME needs is never read if there are as many results.
    if ((*amounts)[k + 1] < same.after) return false;
  }
  graph.set_attribute(id, "padding", ir::EnumName{"SAME"});
  graph.set_input(id, 0, x);
  return true;
}

}  // namespace

constinit const Pass pad_into_layer_float_pass = {
    .name = "pad-into-layer",
    .summary = "PAD with zeros becomes SAME padding where it pads the same.",
    .at = pad_into_layer_at};

}  // namespace reef::passes
