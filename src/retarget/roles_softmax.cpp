// SPDX-License-Identifier: Apache-2.0
// SOFTMAX on the tiles, in some ten steps: largest value, difference to it, exponential (a table), sum, reciprocal (a
// table of the square root, squared), product. Only the first steps depend on the quantization; the output is always
// the probability times 256.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/op.h"
#include "isa/activation.h"
#include "retarget/roles.h"

namespace reef::retarget {

namespace {

constexpr float kExpBound = -13.0380983f;
constexpr float kLaneBeyondClasses = 1e30f;  // multipliers of lanes that stand for no class are larger

struct SoftmaxStep {
  RoleContext& context;
  std::int32_t k;
  ChipTensor in;

  void offer(std::string role, Label label, std::optional<Requantization> constants) const {
    Choice choice;
    choice.op = k;
    choice.role = std::move(role);
    choice.label = {label};
    choice.writes_zero = false;
    if (constants) set_all(choice, *constants);
    context.offer(std::move(choice));
  }
  Label stage(int stage) const { return Label::of_stage(k, stage); }
  numeric::ChipClamp in_clamp() const {
    return numeric::chip_clamp(in.scale, in.zero_point, numeric::ChipActivation::kNone);
  }
  // Differences to the maximum: 255 stands for 0.
  Requantization difference(std::int32_t param_zero, std::int32_t in_zero) const {
    Requantization constants;
    constants.param_zero = param_zero;
    constants.in_zero = in_zero;
    constants.out_zero = 255;
    constants.clamp = {0, numeric::chip_clamp(in.scale, 255, numeric::ChipActivation::kNone).min};
    return constants;
  }
};

// The scale of each class; lanes beyond the last class get one that lets the exponential vanish.
void place_scales(const SoftmaxStep& step, Choice& choice) {
  const Sources& sources = step.context.op.trace->multipliers;
  const Origin origin = RoleContext::blob_of(sources);
  const auto blob = step.context.compiled.blob(origin);
  BlobWords placed;
  placed.blob = origin;
  for (const auto& [first, end] : RoleContext::offsets_of(sources).runs()) {
    for (std::uint32_t offset = first; offset + 4 <= end && offset + 4 <= blob.size(); offset += 4) {
      float old = 0;
      std::memcpy(&old, blob.data() + offset, 4);
      const bool is_beyond = old > kLaneBeyondClasses;
      placed.words.emplace_back(
          offset, float_bits(is_beyond ? step.in.scale * std::numeric_limits<float>::max() : step.in.scale));
    }
  }
  choice.words.push_back(std::move(placed));
}

void offer_exponential(const SoftmaxStep& step) {
  RoleContext& context = step.context;
  if (!tables_are(context, Table::kExp, 65535)) return context.reject(step.k, "the template applies another function");
  Choice choice;
  choice.op = step.k;
  choice.role = "softmax: exponential";
  choice.label = {step.stage(kSoftmaxExp)};
  choice.writes_zero = false;
  const bool per_cell = context.op.has_multipliers;
  set_all(choice, {0, 255, 0, per_cell ? 1.0f : step.in.scale, {0, kExpBound}, 0});
  if (per_cell) place_scales(step, choice);
  context.offer(std::move(choice));
}

// From the input to the difference to the maximum.
void offer_first_steps(const SoftmaxStep& step, std::int32_t x) {
  RoleContext& context = step.context;
  const OpView& op = context.op;
  const Network& network = context.network;
  const bool reads_input = context.input.stages.empty() && network.all_are(context.input.tensors, x);
  if (op.opcode == isa::Opcode::kMaximum && op.lanes_off == 0) {
    const bool of_input = context.parameters.stages.empty() && network.all_are(context.parameters.tensors, x);
    if (!of_input && !context.parameters.is_stage(step.k, kSoftmaxMax)) return;
    const std::int32_t zero = step.in.zero_point;
    step.offer("softmax: maximum", step.stage(kSoftmaxMax), Requantization{zero, 0, zero, 1, step.in_clamp(), -zero});
    return;
  }
  if (!op.is_multiply_add()) return;
  const bool from_blob = op.trace->biases.from_blob();
  if (op.arithmetic == Arithmetic::kElements && op.has_biases && from_blob && !op.has_activation) {
    // Lanes beyond the last class get the smallest value.
    const std::int32_t zero = step.in.zero_point;
    if (reads_input)
      step.offer("softmax: lanes", Label::tensor(x), Requantization{0, zero, zero, 1, step.in_clamp(), 0});
    if (context.input.is_stage(step.k, kSoftmaxShifted)) {
      step.offer("softmax: lanes", step.stage(kSoftmaxShifted), step.difference(0, 255));
    }
  }
  if (op.arithmetic == Arithmetic::kSumsToLine && context.input.is_stage(step.k, kSoftmaxMax)) {
    step.offer("softmax: negated maximum", step.stage(kSoftmaxNegated), step.difference(1, 0));
  }
  if (op.arithmetic == Arithmetic::kWideParam && reads_input && op.has_biases && !from_blob && !op.has_activation) {
    step.offer("softmax: difference", step.stage(kSoftmaxShifted), step.difference(1, 0));
  }
}

// From there on: nothing but the exponential depends on the model.
void offer_last_steps(const SoftmaxStep& step, const ir::Operator& softmax) {
  RoleContext& context = step.context;
  const OpView& op = context.op;
  const Operand &in = context.input, &param = context.parameters;
  if (op.opcode == isa::Opcode::kSum) {
    if (param.is_stage(step.k, kSoftmaxExp)) step.offer("softmax: sum", step.stage(kSoftmaxRoot), {});
    return;
  }
  if (!op.is_multiply_add()) return;
  if (op.arithmetic == Arithmetic::kElements && op.has_activation && in.is_stage(step.k, kSoftmaxShifted)) {
    return offer_exponential(step);
  }
  if (op.arithmetic == Arithmetic::kWideIn && in.is_stage(step.k, kSoftmaxExp)) {
    step.offer("softmax: last lanes", step.stage(kSoftmaxExp), {});
  }
  if (op.arithmetic == Arithmetic::kWideIn && in.is_stage(step.k, kSoftmaxInverse)) {
    step.offer("softmax: reciprocal, packed", step.stage(kSoftmaxInverse), {});
  }
  if (op.arithmetic == Arithmetic::kWideBoth && in.is_stage(step.k, kSoftmaxRoot) &&
      param.is_stage(step.k, kSoftmaxRoot)) {
    step.offer("softmax: reciprocal", step.stage(kSoftmaxInverse), {});
  }
  if (op.arithmetic == Arithmetic::kWideBoth && in.is_stage(step.k, kSoftmaxInverse) &&
      param.is_stage(step.k, kSoftmaxExp)) {
    step.offer("softmax: probabilities", Label::tensor(softmax.outputs[0]), {});
  }
}

}  // namespace

void offer_softmax(RoleContext& context) {
  const Network& network = context.network;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.type != Op::SOFTMAX || op.inputs.empty()) continue;
    const auto in = network.chip(op.inputs[0]), out = network.chip(op.outputs[0]);
    if (!in || !out || !(*out == ChipTensor{1.0f / 256, 0}) || op.attributes.get_float("beta", 1) != 1) {
      context.reject(k, "only beta 1 and output scale 1/256 are known");
      continue;
    }
    const SoftmaxStep step{context, k, *in};
    offer_first_steps(step, op.inputs[0]);
    offer_last_steps(step, op);
  }
}

namespace {

double expected(Table table, double x) {
  switch (table) {
    case Table::kLogistic:
      return 1 / (1 + std::exp(-x));
    case Table::kTanh:
      return std::tanh(x);
    case Table::kExp:
      return std::exp(x);
    case Table::kInverseRoot:
      return 1 / std::sqrt(x);
  }
  return 0;
}

float evaluate(const isa::Instruction& table, float x) {
  int segment = 0;
  while (segment < isa::activation::kBreakpoints && x >= table.get_float(isa::activation::breakpoint(segment)))
    ++segment;
  float y = 0;
  for (int power = isa::activation::kCoefficients - 1; power >= 0; --power) {
    y = y * x + table.get_float(isa::activation::coefficient(segment, power));
  }
  return y;
}

}  // namespace

bool tables_are(const RoleContext& context, Table table, double factor) {
  constexpr std::array<float, 5> kPoints = {0.25f, 0.75f, 1.5f, 3.0f, 3.9f};
  if (context.op.trace->tables.empty()) return false;
  for (const std::uint32_t index : context.op.trace->tables) {
    const isa::Instruction& code = context.compiled.execution.program[index];
    for (const float point : kPoints) {
      const float x = table == Table::kExp ? -point : table == Table::kInverseRoot ? 1 + point / 2 : point;
      const double wanted = factor * expected(table, x);
      // The tables are polynomials with errors far below one step of the result.
      if (!(std::abs(evaluate(code, x) - wanted) < factor / 500)) return false;
    }
  }
  return true;
}

}  // namespace reef::retarget
