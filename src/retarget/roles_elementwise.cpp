// SPDX-License-Identifier: Apache-2.0
// Element by element: sums and products of tensors, constants per channel, changes of quantization, activations.
#include <algorithm>

#include "formats/darwinn/parameters/channel_lines.h"
#include "ir/describe.h"
#include "ir/op.h"
#include "numeric/chip_activation.h"
#include "retarget/roles.h"

namespace reef::retarget {

Requantization elementwise(const ChipTensor& input, const ChipTensor& output, numeric::ChipActivation activation) {
  Requantization constants;
  constants.in_zero = input.zero_point;
  constants.out_zero = output.zero_point;
  constants.scale = numeric::chip_rescale_multiplier(input.scale, output.scale);
  constants.clamp = numeric::chip_clamp(output.scale, output.zero_point, activation);
  return constants;
}

namespace {

bool is_elementwise(const RoleContext& context) {
  const OpView& op = context.op;
  return op.is_multiply_add() && op.arithmetic == Arithmetic::kElements && op.lanes_off == 0 && op.has_only_fills();
}

// The weight words of a sum of two tensors: two 16-bit weights per cell and step, one of them not 0. Each word must
// come from one fill; the fills' values follow from the weight of the tensor that the step reads.
bool add_weight_fills(const RoleContext& context, std::int32_t k, const numeric::ChipAdd& weights, Choice& choice) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  for (const FirstStep& step : context.op.trace->first) {
    const Operand operand = operand_of(context.compiled, context.state, step.inputs[0]);
    std::int32_t weight = -1;
    if (network.all_are(operand.tensors, op.inputs[0]) || (operand.tensors.empty() && !operand.fills.empty())) {
      weight = weights.a_weight;
    } else if (network.all_are(operand.tensors, op.inputs[1])) {
      weight = weights.b_weight;
    }
    if (weight < 0) return false;
    const int element = step.input_address & 3;
    for (std::size_t cell = 0; cell * 4 < step.words.size(); ++cell) {
      const Tag tag = step.words[cell * 4];
      if (tag_origin(tag) != Origin::kFill) return false;
      std::uint32_t word = 0;
      if (static_cast<int>(cell) == element) word = static_cast<std::uint32_t>(weight);
      if (static_cast<int>(cell) == element + 1) word = static_cast<std::uint32_t>(weight) << 16;
      choice.fills.push_back({tag_number(tag), word});
    }
  }
  return true;
}

void offer_table(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const bool is_tanh = op.type == Op::TANH;
  if (context.op.is_odd != is_tanh || context.op.has_wide_result) return;
  const auto input = network.chip(op.inputs[0]), output = network.chip(op.outputs[0]);
  // TFLite allows no other output quantization.
  const ChipTensor needed = is_tanh ? ChipTensor{1.0f / 128, 128} : ChipTensor{1.0f / 256, 0};
  if (!input || !output || !(*output == needed)) {
    return context.reject(k, "its output must have scale 1/{}", is_tanh ? 128 : 256);
  }
  if (!tables_are(context, is_tanh ? Table::kTanh : Table::kLogistic, is_tanh ? 128 : 256)) {
    return context.reject(k, "the template applies another function");
  }
  Choice choice;
  choice.op = k;
  choice.role = "activation table";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.input_zero = Constant::kInZero;
  const float bound = is_tanh ? kTanhBound : kLogisticBound;
  set_all(choice, {0, input->zero_point, output->zero_point, input->scale, {bound, -bound}, 0});
  fill_with_zero_point(choice, context.input.fills, *input);
  context.offer(std::move(choice));
}

void offer_requantization(RoleContext& context, std::int32_t k, std::int32_t from) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const auto input = network.chip(from), output = network.chip(op.outputs[0]);
  if (!input || !output) return context.reject(k, "its tensors are not 8 bits wide with one scale");
  const auto activation = numeric::chip_activation(op.type).value_or(numeric::ChipActivation::kNone);
  Choice choice;
  choice.op = k;
  choice.role = "requantization";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.input_zero = Constant::kInZero;
  set_all(choice, elementwise(*input, *output, activation));
  fill_with_zero_point(choice, context.input.fills, *input);
  context.offer(std::move(choice));
}

// Words of the channels that the op reads, at the places where it reads them: rows of 64 bytes, 4 channels each. A
// vector that is spread over several tiles comes in several parts, one after the other.
bool place_channel_words(const RoleContext& context, std::int32_t k, const Sources& sources,
                         const std::vector<std::uint32_t>& words, Choice& choice) {
  const OffsetSet& offsets = RoleContext::offsets_of(sources);
  const std::size_t rows = (words.size() + 3) / 4;
  const std::size_t here = (offsets.end() - offsets.first() + 63) / 64;
  if (here > rows || rows % here != 0) return false;
  // Parts found so far say where this one stands; the same place again is a repetition.
  const std::string own = fmt::format("{}:{}", static_cast<int>(RoleContext::blob_of(sources)), offsets.first());
  std::size_t index = 0;
  bool is_known = false;
  for (const auto& [op, part] : context.state.used_words) {
    if (op != k) continue;
    is_known = part == own;
    if (is_known) break;
    ++index;
  }
  const std::size_t first_row = (index % (rows / here)) * here;
  BlobWords placed;
  placed.blob = RoleContext::blob_of(sources);
  for (std::size_t row = 0; row < here; ++row) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const std::size_t channel = 4 * (first_row + row) + lane;
      const auto offset = static_cast<std::uint32_t>(offsets.first() + 64 * row + 4 * lane);
      placed.words.emplace_back(offset, channel < words.size() ? words[channel] : 0);
    }
  }
  choice.words.push_back(std::move(placed));
  if (!is_known) choice.words_part = own;
  return true;
}

void offer_channel_constant(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const bool is_product = op.type == Op::MUL;
  if (is_product != context.op.has_multipliers || is_product == context.op.has_biases) return;
  const std::size_t variable = network.is_constant(op.inputs[0]) ? 1 : 0;
  if (!network.all_are(context.input.tensors, op.inputs[variable]) || !network.is_constant(op.inputs[1 - variable])) {
    return;
  }
  const auto input = network.chip(op.inputs[variable]), output = network.chip(op.outputs[0]);
  const auto activation = fused_activation(op);
  if (!input || !output || !activation) return context.reject(k, "its tensors are not 8 bits wide with one scale");
  auto words = darwinn::channel_words_of(network.model(), network.graph(), op);
  if (!words.ok()) return context.reject(k, "{}", words.status().message());
  if (words->size() == 1) {
    const ir::Shape& shape = network.tensor(op.inputs[variable]).shape;
    words->resize(static_cast<std::size_t>(shape.rank() == 0 ? 1 : shape.last()), words->front());
  }
  const Sources& sources = is_product ? context.op.trace->multipliers : context.op.trace->biases;
  if (!sources.from_blob()) return;
  Choice choice;
  if (!place_channel_words(context, k, sources, *words, choice)) {
    return context.reject(k, "it has {} channels, the template another number", words->size());
  }
  choice.op = k;
  choice.role = "constant per channel";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.input_zero = Constant::kInZero;
  Requantization constants = elementwise(*input, *output, *activation);
  if (is_product) constants.scale = 1;  // the factors are per channel
  set_all(choice, constants);
  fill_with_zero_point(choice, context.input.fills, *input);
  context.offer(std::move(choice));
}

// A product with one number is folded into the factor. (Read in one program, whose source is not at hand.)
void offer_scalar_product(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const std::size_t variable = network.is_constant(op.inputs[0]) ? 1 : 0;
  const std::int32_t constant = op.inputs[1 - variable];
  if (!network.is_constant(constant) || !network.all_are(context.input.tensors, op.inputs[variable])) return;
  const auto input = network.chip(op.inputs[variable]), factor = network.chip(constant),
             output = network.chip(op.outputs[0]);
  const auto activation = fused_activation(op);
  const Bytes& data = ir::constant_data(network.model(), network.tensor(constant));
  if (!input || !output || !factor || !activation || data.size() != 1) return;
  const int shift = network.tensor(constant).type == ir::DataType::kInt8 ? 128 : 0;
  const int stored = shift != 0 ? static_cast<std::int8_t>(data.data()[0]) + shift : data.data()[0];
  Choice choice;
  choice.op = k;
  choice.role = "product with a number";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.input_zero = Constant::kInZero;
  Requantization constants = elementwise(*input, *output, *activation);
  constants.scale = numeric::chip_constant_product_multiplier(input->scale, factor->scale, stored - factor->zero_point,
                                                              output->scale);
  set_all(choice, constants);
  fill_with_zero_point(choice, context.input.fills, *input);
  context.offer(std::move(choice));
}

}  // namespace

void offer_additions(RoleContext& context) {
  const OpView& view = context.op;
  if (!view.is_multiply_add() || view.arithmetic != Arithmetic::kWideParam || !view.has_only_fills() ||
      view.has_biases || view.has_activation || view.bits(Constant::kParamZero) != 0) {
    return;
  }
  const Network& network = context.network;
  if (!context.input.stages.empty() || context.input.tensors.empty()) return;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.type != Op::ADD || op.inputs.size() != 2 || network.is_constant(op.inputs[0]) ||
        network.is_constant(op.inputs[1])) {
      continue;
    }
    bool reads[2] = {false, false}, reads_other = false;
    for (const std::int32_t t : context.input.tensors) {
      const bool first = network.is_also(t).count(op.inputs[0]) > 0,
                 second = network.is_also(t).count(op.inputs[1]) > 0;
      reads[0] = reads[0] || first;
      reads[1] = reads[1] || second;
      reads_other = reads_other || (!first && !second);
    }
    if (!reads[0] || !reads[1] || reads_other) continue;
    const auto a = network.chip(op.inputs[0]), b = network.chip(op.inputs[1]), out = network.chip(op.outputs[0]);
    const auto activation = fused_activation(op);
    if (!a || !b || !out || !activation) {
      context.reject(k, "its tensors are not 8 bits wide with one scale");
      continue;
    }
    const auto weights = numeric::chip_add(a->scale, a->zero_point, b->scale, b->zero_point, out->scale);
    if (!weights) {
      context.reject(k, "its scales cannot be combined");
      continue;
    }
    Choice choice;
    choice.op = k;
    choice.role = "sum";
    choice.label = {Label::tensor(op.outputs[0])};
    set_all(choice, {0, 0, out->zero_point, weights->multiplier,
                     numeric::chip_clamp(out->scale, out->zero_point, *activation), weights->offset});
    if (!add_weight_fills(context, k, *weights, choice)) {
      context.reject(k, "the template's weights of the two operands cannot be told apart");
      continue;
    }
    // Padding belongs to the operand that a PAD operator made.
    const bool pads_second = network.is_padded(op.inputs[1]) && !network.is_padded(op.inputs[0]);
    fill_with_zero_point(choice, context.input.fills, pads_second ? *b : *a);
    if (!context.input.fills.empty() && network.is_padded(op.inputs[0]) && network.is_padded(op.inputs[1]) &&
        a->zero_point != b->zero_point) {
      context.reject(k, "both operands are padded, with different zero points");
      continue;
    }
    context.offer(std::move(choice));
  }
}

void offer_elementwise(RoleContext& context) {
  if (!is_elementwise(context) || context.input.tensors.empty() || !context.input.stages.empty()) return;
  const Network& network = context.network;
  const OpView& view = context.op;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.inputs.empty() || op.outputs.empty()) continue;
    if (view.has_activation) {
      if ((op.type == Op::LOGISTIC || op.type == Op::TANH) && network.all_are(context.input.tensors, op.inputs[0])) {
        offer_table(context, k);
      }
      continue;
    }
    const bool has_two = op.inputs.size() == 2 && op.inputs[0] >= 0 && op.inputs[1] >= 0;
    if (view.has_biases || view.has_multipliers) {
      if (has_two && (op.type == Op::MUL || op.type == Op::ADD || op.type == Op::SUB))
        offer_channel_constant(context, k);
      continue;
    }
    if (op.type == Op::MUL && has_two) offer_scalar_product(context, k);
    if (op.type == Op::QUANTIZE || op.type == Op::CONCATENATION || numeric::chip_activation(op.type)) {
      for (const std::int32_t from : op.inputs) {
        if (from < 0 || !network.all_are(context.input.tensors, from)) continue;
        offer_requantization(context, k, from);
        break;
      }
    }
  }
}

// One operand as inputs, the other as parameters.
void offer_products(RoleContext& context) {
  const OpView& view = context.op;
  if (!view.is_multiply_add() || view.arithmetic != Arithmetic::kElements || view.lanes_off != 7 ||
      view.has_wide_result || view.has_activation || view.has_biases || view.has_multipliers) {
    return;
  }
  const Network& network = context.network;
  if (context.input.tensors.empty() || context.parameters.tensors.empty()) return;
  if (!context.input.stages.empty() || !context.parameters.stages.empty()) return;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.type != Op::MUL || op.inputs.size() != 2) continue;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
      const std::int32_t in = op.inputs[first], param = op.inputs[1 - first];
      if (!network.all_are(context.input.tensors, in) || !network.all_are(context.parameters.tensors, param)) continue;
      const auto a = network.chip(in), b = network.chip(param), out = network.chip(op.outputs[0]);
      const auto activation = fused_activation(op);
      if (!a || !b || !out || !activation) {
        context.reject(k, "its tensors are not 8 bits wide with one scale");
        break;
      }
      Choice choice;
      choice.op = k;
      choice.role = "product";
      choice.label = {Label::tensor(op.outputs[0])};
      choice.input_zero = Constant::kInZero;
      choice.parameter_zero = Constant::kParamZero;
      set_all(choice, {b->zero_point, a->zero_point, out->zero_point,
                       numeric::chip_product_multiplier(a->scale, b->scale, out->scale),
                       numeric::chip_clamp(out->scale, out->zero_point, *activation), 0});
      fill_with_zero_point(choice, context.input.fills, *a);
      context.offer(std::move(choice));
      break;
    }
  }
}

}  // namespace reef::retarget
