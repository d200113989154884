// SPDX-License-Identifier: Apache-2.0
// RELU, RELU6 and RELU_N1_TO_1 become part of the operator before them. Exact; of quantized tensors only where both
// have the same scale, because rounding would be another otherwise.
#include "ops/registry.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool fuse_activations_at(Graph& graph, OpId id) {
  const std::string type = graph.type(id);
  if (type != Op::RELU && type != Op::RELU6 && type != Op::RELU_N1_TO_1) return false;
  const TensorId x = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  const OpId before = graph.producer(x);
  if (before == kNone || !graph.is_sound(before) || !graph.has_one_user(x)) return false;
  if (!ops::has_trait(graph.op(before), ops::Trait::kTakesActivation)) return false;
  const ir::Tensor& from = graph.tensor(x);
  const ir::Tensor& to = graph.tensor(y);
  const bool same_numbers = from.type == to.type && from.quantization.scale == to.quantization.scale &&
                            from.quantization.zero_point == to.quantization.zero_point;
  const bool is_known = from.type == ir::DataType::kFloat32 || ir::is_integer_8(from.type);
  if (!same_numbers || !is_known || !has_no_activation(graph, before) || graph.op(before).outputs.size() != 1) {
    return false;
  }
  graph.set_attribute(before, "fused_activation_function", ir::EnumName{type});
  graph.remove(id);
  graph.set_outputs(before, {y});
  return true;
}

}  // namespace

constinit const Pass fuse_activations_float_pass = {
    .name = "fuse-activations",
    .summary = "RELU, RELU6, RELU_N1_TO_1 become part of the operator before them.",
    .at = fuse_activations_at};

}  // namespace reef::passes
