// SPDX-License-Identifier: Apache-2.0
// MAXIMUM of two tensors and PRELU: operators that take several element-wise ops.
//
// How it is known: notes of a study that regenerated such ops of three networks (23 MAXIMUM, 19 PRELU) row by row. No
// pair of the collection has them.
#include "formats/darwinn/parameters/channel_lines.h"
#include "ir/op.h"
#include "retarget/roles.h"

namespace reef::retarget {

namespace {

bool is_weighted_sum(const OpView& op) {
  return op.is_multiply_add() && op.arithmetic == Arithmetic::kWideParam && op.has_only_fills() && !op.has_biases &&
         !op.has_activation;
}

bool is_elementwise(const OpView& op) {
  return op.is_multiply_add() && op.arithmetic == Arithmetic::kElements && op.lanes_off == 0 && op.has_only_fills() &&
         !op.has_activation && !op.has_biases;
}

struct Offer {
  RoleContext& context;
  std::int32_t k;
  Choice operator()(std::string role, Label label, const Requantization& constants, bool reads_zero) const {
    Choice choice;
    choice.op = k;
    choice.role = std::move(role);
    choice.label = {label};
    choice.writes_zero = label.kind == Label::Kind::kTensor;
    if (reads_zero) choice.input_zero = Constant::kInZero;
    set_all(choice, constants);
    return choice;
  }
};

// d = min((b - a) / 2, 0), then b - 2 d. Weights are fixed; the zero point of d is 127 or 128 by a rule not known, and
// either gives the same result, so that it stays.
void offer_maximum_steps(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const auto a = network.chip(op.inputs[0]), b = network.chip(op.inputs[1]), out = network.chip(op.outputs[0]);
  if (!a || !out || a != b || a != out) return context.reject(k, "its tensors do not have the same quantization");
  const Operand& in = context.input;
  const Offer make{context, k};
  bool reads[2] = {false, false}, reads_other = false;
  for (const std::int32_t t : in.tensors) {
    const bool first = network.is_also(t).count(op.inputs[0]) > 0, second = network.is_also(t).count(op.inputs[1]) > 0;
    reads[0] = reads[0] || first;
    reads[1] = reads[1] || second;
    reads_other = reads_other || (!first && !second);
  }
  if (reads_other) return;
  const float scale = a->scale, twice = 2 * scale;
  const auto zero = static_cast<std::int32_t>(context.op.bits(Constant::kOutZero));
  if (reads[0] && reads[1] && in.stages.empty() && context.op.bits(Constant::kParamZero) == 1 &&
      (zero == 127 || zero == 128)) {
    const float lowest = numeric::chip_clamp(twice, zero, numeric::ChipActivation::kNone).min;
    context.offer(make("half the difference", Label::of_stage(k, kMaximumDifference),
                       {1, 0, zero, numeric::chip_rescale_multiplier(scale, twice), {0, lowest}, 0}, false));
  }
  if (in.stages == std::vector<Label>{Label::of_stage(k, kMaximumDifference)} && (reads[0] || reads[1]) &&
      context.op.bits(Constant::kParamZero) == 2) {
    // The addend undoes the zero points: 2 * zero of d - zero of b. The first is what the template has; recover it.
    const auto addend = static_cast<std::int32_t>(context.op.bits(Constant::kAddend));
    const auto template_zero = static_cast<std::int32_t>(context.op.bits(Constant::kOutZero));
    Requantization constants = elementwise(*a, *out, numeric::ChipActivation::kNone);
    constants.param_zero = 2;
    constants.in_zero = 0;
    constants.addend = addend + template_zero - out->zero_point;
    context.offer(make("larger of two", Label::tensor(op.outputs[0]), constants, false));
  }
}

// Positive part, negative part (left out where the output's zero point is 0) times a slope per channel, and their sum.
void offer_prelu_parts(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const auto in = network.chip(op.inputs[0]), out = network.chip(op.outputs[0]);
  if (!in || !out) return context.reject(k, "its tensors are not 8 bits wide with one scale");
  const Offer make{context, k};
  const bool reads_input = context.input.stages.empty() && network.all_are(context.input.tensors, op.inputs[0]);
  const bool reads_negative = context.input.is_stage(k, kPreluNegative);
  if (context.op.has_multipliers && (reads_input || reads_negative)) {
    if (reads_input && out->zero_point != 0) {
      return context.reject(k, "its output needs a zero point of 0 to fit this template");
    }
    const auto words = darwinn::channel_words_of(network.model(), network.graph(), op);
    if (!words.ok()) return context.reject(k, "{}", words.status().message());
    Requantization constants = elementwise(*in, *out, numeric::ChipActivation::kNone);
    constants.scale = 1;
    if (out->zero_point == 0) constants.clamp.min = 0;
    Choice choice = make("slope", Label::of_stage(k, kPreluScaled), constants, reads_input);
    const OffsetSet& offsets = RoleContext::offsets_of(context.op.trace->multipliers);
    if (offsets.empty() || (offsets.end() - offsets.first() + 63) / 64 != (words->size() + 3) / 4) {
      return context.reject(k, "it has {} channels, the template another number", words->size());
    }
    BlobWords placed;
    placed.blob = RoleContext::blob_of(context.op.trace->multipliers);
    for (std::size_t c = 0; c < words->size(); ++c) {
      placed.words.emplace_back(static_cast<std::uint32_t>(offsets.first() + c / 4 * 64 + c % 4 * 4), (*words)[c]);
    }
    choice.words.push_back(std::move(placed));
    return context.offer(std::move(choice));
  }
  if (!reads_input || context.op.has_multipliers) return;
  const bool is_positive_part = context.op.bits(Constant::kMin) == 0;
  if (is_positive_part) {
    context.offer(make("positive part", Label::of_stage(k, kPreluPositive),
                       elementwise(*in, *out, numeric::ChipActivation::kRelu), true));
  } else if (context.op.bits(Constant::kMax) == 0) {
    Requantization constants = elementwise(*in, *in, numeric::ChipActivation::kNone);
    constants.scale = 1;
    constants.clamp.max = 0;
    context.offer(make("negative part", Label::of_stage(k, kPreluNegative), constants, true));
  }
}

}  // namespace

void offer_maximum(RoleContext& context) {
  if (!is_weighted_sum(context.op)) return;
  for (const std::int32_t k : context.network.chip_ops()) {
    const ir::Operator& op = context.network.op(k);
    if (op.type == Op::MAXIMUM && op.inputs.size() == 2) offer_maximum_steps(context, k);
  }
}

void offer_prelu(RoleContext& context) {
  const Network& network = context.network;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.type != Op::PRELU || op.inputs.size() != 2) continue;
    if (is_elementwise(context.op)) offer_prelu_parts(context, k);
    const std::vector<Label> both = {Label::of_stage(k, kPreluPositive), Label::of_stage(k, kPreluScaled)};
    const auto out = network.chip(op.outputs[0]);
    if (!is_weighted_sum(context.op) || context.input.stages != both || !context.input.tensors.empty() || !out)
      continue;
    Requantization constants = elementwise(*out, *out, numeric::ChipActivation::kNone);
    constants.in_zero = 0;
    constants.addend = -2 * out->zero_point;
    context.offer(Offer{context, k}("sum of the parts", Label::tensor(op.outputs[0]), constants, false));
  }
}

}  // namespace reef::retarget
