// SPDX-License-Identifier: Apache-2.0
// SELECT_V2 by a constant condition. The Edge TPU adds and multiplies, but does not select. Float32 only.
//
// A known mask in front of SOFTMAX, as masked_fill(mask, -inf) writes it, is a sum with constants: of a very low number
// and the scores, it becomes ADD of that number or 0. What is masked has no weight either way, what is not stays the
// same number.
//
// Elsewhere (torch.where, masked_fill(mask, 0), tril) each side is multiplied by 1 where it is taken and by 0 where it
// is not, and the products are added; a constant side is only added, or not even that where it is 0. This is the same
// as long as what is not taken is finite: sides behind a division, logarithm, root or power stay as they are, because
// a mask may be there to hide what these make of 0.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

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

// Where a constant condition holds; nullopt: it is not one.
std::optional<std::vector<bool>> known_condition(const Graph& graph, TensorId condition) {
  if (!graph.is_constant(condition)) return std::nullopt;
  const ir::Tensor& tensor = graph.tensor(condition);
  const std::span<const std::uint8_t> data = ir::constant_data(graph.model(), tensor).span();
  if (tensor.type != ir::DataType::kBool || static_cast<std::int64_t>(data.size()) != tensor.shape.elements()) {
    return std::nullopt;
  }
  std::vector<bool> holds;
  for (const std::uint8_t value : data) holds.push_back(value != 0);
  return holds;
}

// 1 where the condition is `taken`, else 0, times `factor`.
TensorId factors(Graph& graph, TensorId condition, const std::vector<bool>& holds, bool taken, float factor) {
  std::vector<float> values;
  for (const bool is_true : holds) values.push_back(is_true == taken ? factor : 0.0f);
  const ir::Shape shape = graph.shape(condition);
  return graph.add_floats(std::move(values), shape, graph.tensor(condition).name + "/mask");
}

bool at_softmax(Graph& graph, OpId id) {
  const auto mask = mask_of(graph, id);
  if (!mask) return false;
  const OpId user = graph.only_user(graph.op(id).outputs[0]);
  if (user == kNone || !graph.is(user, Op::SOFTMAX)) return false;
  const TensorId condition = graph.op(id).inputs[0];
  const auto holds = known_condition(graph, condition);
  if (!holds) return false;
  const TensorId constant = factors(graph, condition, *holds, mask->masks_true, mask->value);
  graph.become(id, Op::ADD, "AddOptions", activation_attributes("NONE"), {mask->scores, constant});
  return true;
}

// Whether a tensor may hold infinities or no numbers where everything that comes in is finite. What lies behind layers
// does not count: they would spread such values over all of a picture.
bool may_be_infinite(const Graph& graph, TensorId tensor) {
  constexpr Op kDangerous[] = {Op::DIV, Op::LOG, Op::RSQRT, Op::SQRT, Op::EXP, Op::POW};
  constexpr Op kEnds[] = {Op::CONV_2D,      Op::DEPTHWISE_CONV_2D, Op::TRANSPOSE_CONV, Op::FULLY_CONNECTED,
                          Op::BATCH_MATMUL, Op::SOFTMAX,           Op::LOGISTIC,       Op::TANH};
  constexpr std::size_t kMostSteps = 64;
  std::vector<TensorId> open = {tensor};
  for (std::size_t step = 0; step < open.size(); ++step) {
    if (step == kMostSteps) return true;
    if (graph.is_constant(open[step])) {
      const auto values = graph.floats(open[step]);
      if (values && !std::all_of(values->begin(), values->end(), [](float v) { return std::isfinite(v); })) return true;
      continue;
    }
    const OpId producer = graph.producer(open[step]);
    if (producer == kNone) continue;
    if (is_one_of(graph.op(producer).type, kDangerous)) return true;
    if (is_one_of(graph.op(producer).type, kEnds)) continue;
    for (const TensorId input : graph.op(producer).inputs) {
      if (input >= 0 && std::find(open.begin(), open.end(), input) == open.end()) open.push_back(input);
    }
  }
  return false;
}

bool elsewhere(Graph& graph, OpId id) {
  constexpr float kLargest = 1000;  // of a constant: larger ones are no values (quantize/masks.h)
  if (!graph.is(id, Op::SELECT_V2) && !graph.is(id, Op::SELECT)) return false;
  const std::vector<TensorId> inputs = graph.op(id).inputs;
  const TensorId y = graph.op(id).outputs[0];
  if (inputs.size() != 3 || !is_float(graph, y) || graph.shape(y).rank() > 4) return false;
  const auto holds = known_condition(graph, inputs[0]);
  // SELECT takes whole rows by a condition of one dimension.
  if (!holds || (graph.is(id, Op::SELECT) && graph.shape(inputs[0]) != graph.shape(y))) return false;
  int computed = 0;
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const TensorId x = inputs[side];
    if (graph.is_constant(x)) {
      const auto number = graph.uniform(x);
      if (!number || !(std::abs(*number) <= kLargest)) return false;
    } else if (graph.shape(x) != graph.shape(y) || may_be_infinite(graph, x)) {
      return false;
    } else {
      ++computed;
    }
  }
  if (computed == 0) return false;
  std::vector<TensorId> terms;
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const TensorId x = inputs[side];
    const float number = graph.uniform(x).value_or(1);
    if (number == 0) continue;
    terms.push_back(factors(graph, inputs[0], *holds, side == 1, number));
    if (graph.is_constant(x)) continue;
    if (computed == 1 && graph.uniform(inputs[3 - side]) == 0.0f) {
      graph.become(id, Op::MUL, "MulOptions", activation_attributes("NONE"), {x, terms.back()});
      return true;
    }
    const TensorId product = graph.add_like(y, graph.shape(y));
    graph.add_op(id, Op::MUL, "MulOptions", activation_attributes("NONE"), {x, terms.back()}, {product});
    terms.back() = product;
  }
  if (graph.is_constant(terms[0])) std::swap(terms[0], terms[1]);
  graph.become(id, Op::ADD, "AddOptions", activation_attributes("NONE"), terms);
  return true;
}

bool masks_at(Graph& graph, OpId id) { return at_softmax(graph, id) || elsewhere(graph, id); }

}  // namespace

constinit const Pass masks_float_pass = {.name = "masks",
                                         .summary =
                                             "SELECT_V2 by a constant condition becomes ADD of a constant in front of "
                                             "SOFTMAX (`masked_fill(mask, -inf)`), elsewhere MUL of both sides by 1 or "
                                             "0, and ADD (`torch.where`, `tril`).",
                                         .at = masks_at};

}  // namespace reef::passes
