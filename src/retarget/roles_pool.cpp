// SPDX-License-Identifier: Apache-2.0
// Pooling, means, and resampling: operators whose data enter as parameters, or that have no constants at all.
#include <algorithm>
#include <cstring>

#include "ir/op.h"
#include "retarget/roles.h"

namespace reef::retarget {

namespace {

struct Window {
  std::int64_t values = 0;  // of one full window
  bool is_whole_map = false;
  bool may_be_cut = false;  // SAME padding: windows at the border have fewer values
};

std::optional<Window> window_of(const Network& network, const ir::Operator& op) {
  const ir::Shape& shape = network.tensor(op.inputs[0]).shape;
  Window window;
  if (op.type == Op::MEAN) {
    if (op.inputs.size() != 2 || !network.is_constant(op.inputs[1])) return std::nullopt;
    const Bytes& axes = ir::constant_data(network.model(), network.tensor(op.inputs[1]));
    if (network.tensor(op.inputs[1]).type != ir::DataType::kInt32 || axes.size() % 4 != 0) return std::nullopt;
    window.values = 1;
    for (std::size_t k = 0; k < axes.size(); k += 4) {
      std::int32_t axis = 0;
      std::memcpy(&axis, axes.data() + k, 4);
      if (axis < 0) axis += shape.rank();
      if (axis < 0 || axis >= shape.rank()) return std::nullopt;
      window.values *= shape[axis];
    }
    window.is_whole_map = true;
    return window;
  }
  if (shape.rank() != 4) return std::nullopt;
  const std::int64_t height = op.attributes.get_int("filter_height"), width = op.attributes.get_int("filter_width");
  window.values = height * width;
  window.is_whole_map = height >= shape[1] && width >= shape[2];
  window.may_be_cut = op.attributes.get_enum("padding") == "SAME";
  return window;
}

void keep_open_clamp(const OpView& view, numeric::ChipActivation activation, Choice& choice) {
  // Some compilers do not clamp what cannot leave the range.
  if (!view.has_open_clamp() || activation != numeric::ChipActivation::kNone) return;
  choice.set(Constant::kMax, view.bits(Constant::kMax));
  choice.set(Constant::kMin, view.bits(Constant::kMin));
}

// The divisor of a window's sums: the number of its values. Where some windows are cut at the border, the values
// of a window of n are weighted with common / n, so that one division by the common multiple does for all; the smallest
// weight is that of whole windows.
std::optional<std::int64_t> divisor_of(const RoleContext& context, const Window& window, std::int64_t steps) {
  std::int64_t smallest = 0;
  for (const std::uint32_t fill : context.input.fills) {
    const auto weight = std::int64_t{context.compiled.fill_value(fill)};
    smallest = smallest == 0 ? weight : std::min(smallest, weight);
  }
  const std::int64_t divisor = steps * smallest;
  for (const std::uint32_t fill : context.input.fills) {
    const auto weight = std::int64_t{context.compiled.fill_value(fill)};
    if (weight == 0 || divisor % weight != 0 || (weight != smallest && !window.may_be_cut)) return std::nullopt;
  }
  return divisor;
}

void offer_average(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const auto input = network.chip(op.inputs[0]), output = network.chip(op.outputs[0]);
  const auto activation = fused_activation(op);
  const auto window = window_of(network, op);
  if (!input || !output || !activation || !window) {
    return context.reject(k, "its tensors are not 8 bits wide with one scale, or its window is not constant");
  }
  const auto steps = static_cast<std::int64_t>(context.op.trace->steps_per_result);
  if (steps != window->values && !(window->may_be_cut && steps < window->values)) {
    return context.reject(k, "its window has {} values, the template's {}", window->values, steps);
  }
  const auto divisor = divisor_of(context, *window, steps);
  if (!divisor) return context.reject(k, "the template weights values otherwise");
  Choice choice;
  choice.op = k;
  choice.role = "average";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.parameter_zero = Constant::kParamZero;
  // Old compilers divide last, as newer ones do for windows that are smaller than the map.
  const auto order = window->is_whole_map && !context.op.has_open_clamp() ? numeric::ChipPoolOrder::kOutputLast
                                                                          : numeric::ChipPoolOrder::kCountLast;
  set_all(choice,
          {input->zero_point, 0, output->zero_point,
           numeric::chip_pool_multiplier(input->scale, output->scale, static_cast<std::int32_t>(*divisor), order),
           numeric::chip_clamp(output->scale, output->zero_point, *activation), 0});
  keep_open_clamp(context.op, *activation, choice);
  for (const std::uint32_t fill : context.input.fills) {
    choice.fills.push_back({fill, context.compiled.fill_value(fill)});  // depends on the window alone
  }
  fill_with_zero_point(choice, context.parameters.fills, *input);
  context.offer(std::move(choice));
}

// Nearest or bilinear; for the latter, pixels are points at their centres (odd phases) or at their corners.
bool is_same_resampling(const isa::Instruction& code, const ir::Operator& op) {
  namespace r = isa::tensor_op::resample;
  const bool is_nearest = op.type == Op::RESIZE_NEAREST_NEIGHBOR;
  if (code.test(r::kXNearest) != is_nearest || code.test(r::kYNearest) != is_nearest) return false;
  if (is_nearest) return true;
  const bool has_centres = op.attributes.get_bool("half_pixel_centers");
  return (code.bits(r::kXPhase) & 1) == (has_centres ? 1u : 0u) &&
         (code.bits(r::kYPhase) & 1) == (has_centres ? 1u : 0u);
}

void offer_maximum_pool(RoleContext& context, std::int32_t k) {
  const Network& network = context.network;
  const ir::Operator& op = network.op(k);
  const auto input = network.chip(op.inputs[0]), output = network.chip(op.outputs[0]);
  const auto activation = fused_activation(op);
  const auto window = window_of(network, op);
  if (!input || !output || !activation || !window || !(*input == *output)) {
    return context.reject(k, "input and output do not have the same quantization");
  }
  const auto steps = static_cast<std::int64_t>(context.op.trace->steps_per_result);
  if (steps > 0 && steps != window->values && !(window->may_be_cut && steps < window->values)) {
    return context.reject(k, "its window has {} values, the template's {}", window->values, steps);
  }
  Choice choice;
  choice.op = k;
  choice.role = "maximum of a window";
  choice.label = {Label::tensor(op.outputs[0])};
  choice.parameter_zero = Constant::kInZero;
  Requantization constants = elementwise(*output, *output, *activation);
  constants.addend = -output->zero_point;
  set_all(choice, constants);
  keep_open_clamp(context.op, *activation, choice);
  for (const std::uint32_t fill : context.parameters.fills) choice.fills.push_back({fill, 0});
  context.offer(std::move(choice));
}

}  // namespace

void offer_pools(RoleContext& context) {
  const OpView& view = context.op;
  const Network& network = context.network;
  if (context.parameters.tensors.empty() || !context.parameters.stages.empty()) return;
  const bool is_maximum = view.opcode == isa::Opcode::kMaximum && view.lanes_off == 7;
  const bool is_average = view.is_multiply_add() && view.arithmetic == Arithmetic::kWideIn && view.lanes_off == 6 &&
                          !context.input.has_values() && !context.input.fills.empty() && !view.has_wide_result;
  if (!is_maximum && !is_average) return;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (op.inputs.empty() || !network.all_are(context.parameters.tensors, op.inputs[0])) continue;
    if (is_maximum && op.type == Op::MAX_POOL_2D) offer_maximum_pool(context, k);
    if (is_average && (op.type == Op::AVERAGE_POOL_2D || op.type == Op::MEAN)) offer_average(context, k);
  }
}

// Neighbouring values are mixed or chosen; quantization plays no part.
void offer_resamplings(RoleContext& context) {
  if (context.op.opcode != isa::Opcode::kResample || context.input.tensors.empty()) return;
  const Network& network = context.network;
  for (const std::int32_t k : network.chip_ops()) {
    const ir::Operator& op = network.op(k);
    if (!op.type.starts_with("RESIZE_") || !network.all_are(context.input.tensors, op.inputs[0])) continue;
    const auto input = network.chip(op.inputs[0]);
    if (!input || network.chip(op.outputs[0]) != input) {
      context.reject(k, "input and output do not have the same quantization");
      continue;
    }
    if (!is_same_resampling(*context.op.code, op)) {
      context.reject(k, "the template takes its values from other places");
      continue;
    }
    Choice choice;
    choice.op = k;
    choice.role = "resampling";
    choice.label = {Label::tensor(op.outputs[0])};
    choice.writes_zero = false;
    fill_with_zero_point(choice, context.input.fills, *input);
    context.offer(std::move(choice));
  }
}

}  // namespace reef::retarget
