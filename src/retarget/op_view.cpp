// SPDX-License-Identifier: Apache-2.0
#include "retarget/op_view.h"

#include <fmt/ranges.h>

namespace reef::retarget {

namespace {

namespace t = isa::tensor_op;

constexpr std::uint32_t kOne = 0x3f800000, kPlusInfinity = 0x7f800000, kMinusInfinity = 0xff800000;

Arithmetic arithmetic_of(const isa::Instruction& code) {
  const bool is_static = code.test(t::kStaticParams), inside = code.test(t::kAccumulateInside);
  const bool in_16 = code.test(t::kIn16), param_16 = code.test(t::kParam16);
  if (is_static) return !in_16 && !param_16 ? Arithmetic::kWeights : Arithmetic::kOther;
  if (!inside) return param_16 && !in_16 ? Arithmetic::kSumsToLine : Arithmetic::kOther;
  if (in_16) return param_16 ? Arithmetic::kWideBoth : Arithmetic::kWideIn;
  return param_16 ? Arithmetic::kWideParam : Arithmetic::kElements;
}

}  // namespace

const isa::Field& constant_field(Constant constant) {
  static constexpr std::array<const isa::Field*, kConstants> kFields = {
      &t::kParamZero, &t::kInZero, &t::kOutZero, &t::kScale, &t::kMax, &t::kMin, &t::kConstant};
  return *kFields[at(constant)];
}

bool OpView::has_open_clamp() const {
  return bits(Constant::kMax) == kPlusInfinity && bits(Constant::kMin) == kMinusInfinity;
}

bool OpView::has_only_fills() const {
  const Sources& parameters = trace->parameters;
  return !parameters.fills.empty() && !parameters.from_blob() && !parameters.from_activations();
}

bool OpView::is_copy() const {
  return is_multiply_add() && has_only_fills() && bits(Constant::kScale) == kOne && has_open_clamp() &&
         bits(Constant::kParamZero) == 0 && bits(Constant::kInZero) == 0 && bits(Constant::kOutZero) == 0 &&
         bits(Constant::kAddend) == 0 && !has_biases && !has_multipliers && !has_zero_line && !has_activation;
}

OpView view_of(const isa::Instruction& code, const TensorOpTrace& trace) {
  OpView view;
  view.instruction = trace.instruction;
  view.code = &code;
  view.trace = &trace;
  view.opcode = code.opcode();
  view.arithmetic = arithmetic_of(code);
  view.lanes_off = static_cast<int>(code.bits(t::kLanesOff));
  view.cells = static_cast<int>(code.get(t::kCells));
  view.has_biases = code.test(t::kBias);
  view.has_multipliers = code.test(t::kScalePerCell);
  view.has_zero_line = code.test(t::kParamZeroLine);
  view.has_activation = code.test(t::kActivation);
  view.is_odd = code.bits(t::kOddSymmetry) == 3;
  view.has_wide_result = code.test(t::kOut16);
  for (int k = 0; k < kConstants; ++k) {
    view.constants[at(k)] = code.bits(constant_field(static_cast<Constant>(k)));
  }
  return view;
}

std::string describe(const OpView& op) {
  std::vector<std::string> parts;
  const Sources& parameters = op.trace->parameters;
  switch (op.opcode) {
    case isa::Opcode::kMaximum:
      parts.emplace_back("a maximum");
      break;
    case isa::Opcode::kSum:
      parts.emplace_back("a sum");
      break;
    case isa::Opcode::kResample:
      parts.emplace_back("a resampling");
      break;
    default:
      if (parameters.from_blob()) {
        parts.push_back(fmt::format("a layer of {} weight lines for {} cells", op.trace->steps_per_result, op.cells));
      } else if (parameters.from_activations()) {
        parts.emplace_back(op.trace->input.from_activations() ? "a product of two tensors" : "a sum over a window");
      } else {
        parts.emplace_back(op.arithmetic == Arithmetic::kWideParam ? "a weighted sum of tensors"
                                                                   : "an element-wise operation");
      }
  }
  if (op.has_biases) parts.emplace_back("with biases");
  if (op.has_multipliers) parts.emplace_back("with a multiplier per channel");
  if (op.has_activation) parts.emplace_back("with an activation table");
  return fmt::format("instruction {} ({})", op.instruction, fmt::join(parts, " "));
}

}  // namespace reef::retarget
