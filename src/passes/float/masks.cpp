// SPDX-License-Identifier: Apache-2.0
// A known mask in front of SOFTMAX, as masked_fill(mask, -inf) writes it, is a sum with constants: SELECT_V2 of a very
// low number and the scores, by a constant condition, becomes ADD of that number or 0. The Edge TPU adds, but does not
// select. Float32 only; what is masked has no weight either way, what is not stays the same number.
#include <cmath>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// Scores that are lower than others by this much weigh nothing, whatever is added to them.
constexpr float kLowest = -1000.0f;

struct Mask {
  TensorId scores = kNone;
  bool masks_true = true;  // where the condition holds
  float value = 0;
};

std::optional<Mask> mask_of(const Graph& graph, OpId id) {
  if (!graph.is(id, Op::SELECT_V2) && !graph.is(id, Op::SELECT)) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  if (op.inputs.size() != 3 || !graph.is_constant(op.inputs[0]) || !is_float(graph, op.outputs[0])) return std::nullopt;
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const auto value = graph.uniform(op.inputs[side]);
    const TensorId scores = op.inputs[3 - side];
    if (!value || std::isnan(*value) || *value > kLowest || graph.is_constant(scores)) continue;
    if (graph.shape(scores) != graph.shape(op.outputs[0])) continue;
    return Mask{scores, side == 1, *value};
  }
  return std::nullopt;
}

bool at(Graph& graph, OpId id) {
  const auto mask = mask_of(graph, id);
  if (!mask) return false;
  const OpId user = graph.only_user(graph.op(id).outputs[0]);
  if (user == kNone || !graph.is(user, Op::SOFTMAX)) return false;
  const TensorId condition = graph.op(id).inputs[0];
  const ir::Tensor& tensor = graph.tensor(condition);
  const std::span<const std::uint8_t> data = ir::constant_data(graph.model(), tensor).span();
  const ir::Shape shape = tensor.shape;
  if (tensor.type != ir::DataType::kBool || static_cast<std::int64_t>(data.size()) != shape.elements()) return false;
  std::vector<float> values;
  for (const std::uint8_t holds : data) values.push_back((holds != 0) == mask->masks_true ? mask->value : 0.0f);
  const TensorId constant = graph.add_floats(std::move(values), shape, tensor.name + "/mask");
  graph.become(id, Op::ADD, "AddOptions", activation_attributes("NONE"), {mask->scores, constant});
  return true;
}

}  // namespace

constinit const Pass masks_float_pass = {.name = "masks",
                                         .summary =
                                             "SELECT_V2 of a very low number and scores by a constant condition, in "
                                             "front of SOFTMAX (`masked_fill(mask, -inf)`), becomes ADD of a constant.",
                                         .at = at};

}  // namespace reef::passes
