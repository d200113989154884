// SPDX-License-Identifier: Apache-2.0
// Ops that treat every element alike.
#include <algorithm>

#include "execute/reference/chip_reference_op.h"
#include "numeric/chip_squares.h"
#include "numeric/chip_tables.h"
#include "ops/table_functions.h"

namespace reef::reference {
namespace {

using numeric::ChipActivation;
using numeric::ChipClamp;

// Scales of an op of one or two inputs and its output.
struct Scales {
  ChipQuantization a, b, out;
  ChipClamp clamp;
};

Result<Scales> scales(const ChipOp& op) {
  Scales s;
  REEF_ASSIGN_OR_RETURN(s.a, op.quantization(op.input(0)));
  if (op.has(1)) {
    REEF_ASSIGN_OR_RETURN(s.b, op.quantization(op.input(1)));
  }
  REEF_ASSIGN_OR_RETURN(s.out, op.quantization(op.output()));
  REEF_ASSIGN_OR_RETURN(const ChipActivation activation, op.fused_activation());
  s.clamp = numeric::chip_clamp(s.out.scale(), s.out.zero(), activation);
  return s;
}

// Elements of a tensor as if it had the output's shape: dimensions of one element are repeated. How Google's compilers
// do this is not known; the numbers are those of a tensor of that shape.
std::vector<std::int32_t> spread_out(const ChipOp& op, std::size_t k) {
  const ChipValue& value = op.value(k);
  const ir::Shape& shape = op.output().shape;
  if (value.shape == shape) return value.codes;
  std::vector<std::int32_t> codes;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, at = 0, distance = 1;
    for (int d = 0; d < shape.rank(); ++d) {  // from the last dimension on
      const int of_output = shape.rank() - 1 - d, of_input = value.shape.rank() - 1 - d;
      const std::int64_t index = rest % shape[of_output];
      rest /= shape[of_output];
      if (of_input < 0) continue;
      if (value.shape[of_input] > 1) at += index * distance;
      distance *= value.shape[of_input];
    }
    codes.push_back(value.codes[reef::at(at)]);
  }
  return codes;
}

// A constant operand: one number, or one per channel.
struct Constant {
  const ChipValue* value = nullptr;
  std::int32_t zero = 0;
  std::int32_t at(std::size_t element) const { return value->codes[element % value->codes.size()] - zero; }
};

// Operand `i` is a constant, one number or one per channel, and the other one has the output's shape. Other constants
// are used like computed tensors.
bool is_one_constant(const ChipOp& op, std::size_t i) {
  if (!op.is_constant(i) || op.is_constant(1 - i)) return false;
  const ChipValue& value = op.value(i);
  const auto elements = static_cast<std::int64_t>(value.codes.size());
  const ir::Shape& shape = op.output().shape;
  const bool per_channel =
      shape.rank() > 0 && value.shape.rank() > 0 && elements == shape.last() && elements == value.shape.last();
  return (elements == 1 || per_channel) && op.value(1 - i).shape == shape;
}

// The constant operand `i` of an op whose other operand has the output's shape.
Result<Constant> constant(const ChipOp& op, std::size_t i, const ChipQuantization& q) {
  const ChipValue& value = op.value(i);
  if (!is_one_constant(op, i)) {
    return unsupported("it is not known how the chip computes it for {} and a constant of shape {}",
                       op.value(1 - i).shape.to_string(), value.shape.to_string());
  }
  REEF_REQUIRE(q.scales.size() == 1, "a constant with several scales");
  return Constant{&value, q.zero()};
}

// ---- ADD, SUB, MUL ----

// A difference is a sum with a negative weight (no program of Google's is known that has one; ours are made so).
Status add_tensors(ChipOp& op, const Scales& s, std::int32_t sign) {
  const auto weights = op.options().compiler_generation <= kOldestGeneration ? numeric::ChipAddWeights::kFirstWhole
                                                                             : numeric::ChipAddWeights::kClosest;
  const auto add = numeric::chip_add(s.a.scale(), s.a.zero(), s.b.scale(), s.b.zero(), s.out.scale(), weights);
  REEF_REQUIRE(add.has_value(), "scales that cannot be added");
  const std::vector<std::int32_t> a = spread_out(op, 0), b = spread_out(op, 1);
  std::vector<std::int32_t> codes;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t sum =
        std::int64_t{add->a_weight} * (a[i] - s.a.zero()) + std::int64_t{add->b_weight} * sign * (b[i] - s.b.zero());
    codes.push_back(requantized(sum, add->multiplier, s.clamp, s.out.zero()));
  }
  return op.give(std::move(codes));
}

// The constant becomes a bias in units of the input's scale, and the sum is brought to the output's. A difference from
// a constant is the negative of that.
Status add_constant(ChipOp& op, const ChipQuantization& in, std::size_t variable, const ChipQuantization& of_constant,
                    std::int32_t sign, const Scales& s, float whole_sign = 1) {
  REEF_ASSIGN_OR_RETURN(const Constant addend, constant(op, 1 - variable, of_constant));
  const float multiplier = whole_sign * numeric::chip_rescale_multiplier(in.scale(), s.out.scale());
  std::vector<std::int32_t> codes;
  const auto& x = op.value(variable).codes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bias = numeric::chip_constant_bias(sign * addend.at(i), of_constant.scale(), in.scale());
    REEF_REQUIRE(bias.has_value(), "a constant that is no 32-bit bias");
    codes.push_back(requantized(std::int64_t{x[i]} - in.zero() + *bias, multiplier, s.clamp, s.out.zero()));
  }
  return op.give(std::move(codes));
}

Status add(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  if (is_one_constant(op, 1)) return add_constant(op, s.a, 0, s.b, 1, s);
  if (is_one_constant(op, 0)) return add_constant(op, s.b, 1, s.a, 1, s);
  return add_tensors(op, s, 1);
}

Status sub(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  if (is_one_constant(op, 0)) return add_constant(op, s.b, 1, s.a, -1, s, -1);
  if (is_one_constant(op, 1)) return add_constant(op, s.a, 0, s.b, -1, s);
  return add_tensors(op, s, -1);
}

Status mul_constant(ChipOp& op, const ChipQuantization& in, std::size_t variable, const ChipQuantization& of_constant,
                    const Scales& s) {
  REEF_ASSIGN_OR_RETURN(const Constant factor, constant(op, 1 - variable, of_constant));
  std::vector<std::int32_t> codes;
  const auto& x = op.value(variable).codes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float multiplier =
        numeric::chip_constant_product_multiplier(in.scale(), of_constant.scale(), factor.at(i), s.out.scale());
    codes.push_back(requantized(x[i] - in.zero(), multiplier, s.clamp, s.out.zero()));
  }
  return op.give(std::move(codes));
}

Status by_fitted_table(ChipOp& op);

Status mul(ChipOp& op) {
  if (ops::has_table(op.op())) return by_fitted_table(op);  // SiLU
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  if (is_one_constant(op, 1)) return mul_constant(op, s.a, 0, s.b, s);
  if (is_one_constant(op, 0)) return mul_constant(op, s.b, 1, s.a, s);
  const float multiplier = numeric::chip_product_multiplier(s.a.scale(), s.b.scale(), s.out.scale());
  const std::vector<std::int32_t> a = spread_out(op, 0), b = spread_out(op, 1);
  std::vector<std::int32_t> codes;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t product = std::int64_t{a[i] - s.a.zero()} * (b[i] - s.b.zero());
    codes.push_back(requantized(product, multiplier, s.clamp, s.out.zero()));
  }
  return op.give(std::move(codes));
}

// ---- Maximum and minimum ----

// a - 2 * min(round((a - b) / 2), 0): one more or less than the maximum where b - a is odd and positive. Which operand
// is `a` is the compiler's choice; in the one model studied (23 of these) it is the second. The minimum is the mirror
// image, of which no program of Google's is known. With a constant it is exact in our own programs; Google's are not
// known.
Status extreme(ChipOp& op, bool is_maximum) {
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  if (!(s.a == s.b) || !(s.a == s.out)) {
    return unsupported("it is not known how the chip takes the extreme of tensors of different scales");
  }
  const float half = (1.0f / s.out.scale()) * (s.out.scale() / 2.0f);  // not always 0.5
  const ChipClamp difference = is_maximum ? ChipClamp{.max = 0, .min = -128} : ChipClamp{.max = 127, .min = 0};
  const bool is_exact = op.is_constant(0) || op.is_constant(1);
  const std::vector<std::int32_t> a = spread_out(op, 1), b = spread_out(op, 0);
  constexpr std::int32_t kZero = 128;
  std::vector<std::int32_t> codes;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_exact) {
      codes.push_back(is_maximum ? std::max(a[i], b[i]) : std::min(a[i], b[i]));
      continue;
    }
    const std::int32_t limited = requantized(a[i] - b[i], half, difference, kZero) - kZero;
    codes.push_back(requantized(a[i] - 2 * limited - s.out.zero(), 1.0f, s.clamp, s.out.zero()));
  }
  return op.give(std::move(codes));
}
Status maximum(ChipOp& op) { return extreme(op, true); }
Status minimum(ChipOp& op) { return extreme(op, false); }

// ---- Squared difference ----

// The weighted sum times its multiplier is the difference itself, which is not rounded; its square comes by a table.
// Google's programs have the same numbers (docs/hardware/public_files.md#larger-files).
Status squared_difference(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  const auto add = numeric::chip_add(s.a.scale(), s.a.zero(), s.b.scale(), s.b.zero(), 1.0f);
  REEF_REQUIRE(add.has_value(), "scales that cannot be subtracted");
  const numeric::ChipFunction square = numeric::chip_square(s.out.scale());
  const std::vector<std::int32_t> a = spread_out(op, 0), b = spread_out(op, 1);
  std::vector<std::int32_t> codes;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t sum =
        std::int64_t{add->a_weight} * (a[i] - s.a.zero()) - std::int64_t{add->b_weight} * (b[i] - s.b.zero());
    const float difference = static_cast<float>(sum) * add->multiplier;
    codes.push_back(numeric::chip_round(square.at(difference), s.out.zero(), 255));
  }
  return op.give(std::move(codes));
}

// ---- One input ----

Status rescale_with(ChipOp& op, ChipActivation activation) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  if (!ir::is_integer_8(op.input(0).type) || !ir::is_integer_8(op.output().type)) {
    return unsupported("it is known for 8-bit tensors only");
  }
  REEF_ASSIGN_OR_RETURN(std::vector<std::int32_t> codes, rescaled(op.value(0).codes, from, to, activation));
  return op.give(std::move(codes));
}
Status quantize(ChipOp& op) { return rescale_with(op, ChipActivation::kNone); }
Status relu(ChipOp& op) { return rescale_with(op, ChipActivation::kRelu); }
Status relu6(ChipOp& op) { return rescale_with(op, ChipActivation::kRelu6); }
Status relu_n1_to_1(ChipOp& op) { return rescale_with(op, ChipActivation::kReluN1To1); }

void apply_table(ChipOp& op, std::size_t operand, const numeric::ChipFunction& table, const ChipQuantization& from,
                 const ChipQuantization& to) {
  std::vector<std::int32_t> codes;
  for (const std::int32_t code : op.value(operand).codes) {
    const float argument = static_cast<float>(code - from.zero()) * from.scale();
    codes.push_back(numeric::chip_round(table.at(argument), to.zero(), 255));
  }
  op.set(0, std::move(codes));
}

Status by_table(ChipOp& op, numeric::ChipFunction (*function)(float output_scale)) {
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(0)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  apply_table(op, 0, function(to.scale()), from, to);
  return ok_status();
}
// By a table of Reef's own (ops/table_functions.h).
Status by_fitted_table(ChipOp& op) {
  if (!ops::has_table(op.op())) return unsupported("no table was fitted for it (rewrite by-table)");
  const std::size_t operand = ops::table_operand(op.op());
  REEF_ASSIGN_OR_RETURN(const ChipQuantization from, op.quantization(op.input(operand)));
  REEF_ASSIGN_OR_RETURN(const ChipQuantization to, op.quantization(op.output()));
  if (!ir::is_integer_8(op.input(operand).type) || !ir::is_integer_8(op.output().type)) {
    return unsupported("it is known for 8-bit tensors only");
  }
  const numeric::TableFit fit = ops::table_fit(op.op(), {from.scale(), from.zero()}, {to.scale(), to.zero()});
  apply_table(op, operand, fit.function, from, to);
  return ok_status();
}
Status logistic(ChipOp& op) { return by_table(op, numeric::chip_logistic); }
Status tanh(ChipOp& op) { return by_table(op, numeric::chip_tanh); }
// By the table that SOFTMAX has, as a transformer of Google's compiler shows (docs/hardware/public_files.md). The root
// of 0 is more than any output can be, as in TFLite; that the chip agrees is an assumption.
Status rsqrt(ChipOp& op) {
  return by_table(op, [](float output_scale) { return numeric::chip_inverse_root(1.0f / output_scale); });
}

// The positive part and the negative part times alpha, each rounded, then added.
Status prelu(ChipOp& op) {
  REEF_ASSIGN_OR_RETURN(const Scales s, scales(op));
  if (!op.is_constant(1)) return unsupported("it is not known how the chip computes it with a computed slope");
  REEF_ASSIGN_OR_RETURN(const Constant slope, constant(op, 1, s.b));
  const float positive = numeric::chip_rescale_multiplier(s.a.scale(), s.out.scale());
  const std::int32_t zero = s.out.zero();
  std::vector<std::int32_t> codes;
  const auto& x = op.value(0).codes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int32_t value = x[i] - s.a.zero();
    const float negative =
        numeric::chip_constant_product_multiplier(s.a.scale(), s.b.scale(), slope.at(i), s.out.scale());
    const ChipClamp above = {.max = s.clamp.max, .min = 0};
    const std::int32_t sum =
        requantized(value, positive, above, zero) + requantized(std::min(value, 0), negative, s.clamp, zero) - 2 * zero;
    codes.push_back(requantized(sum, 1.0f, s.clamp, zero));
  }
  return op.give(std::move(codes));
}

}  // namespace

std::vector<ChipOpEntry> chip_elementwise_ops() {
  return {{Op::ADD, add, 2},
          {Op::SUB, sub, 2},
          {Op::MUL, mul, 2},
          {Op::MAXIMUM, maximum, 2},
          {Op::MINIMUM, minimum, 2},
          {Op::QUANTIZE, quantize},
          {Op::RELU, relu},
          {Op::RELU6, relu6},
          {Op::RELU_N1_TO_1, relu_n1_to_1},
          {Op::LOGISTIC, logistic},
          {Op::TANH, tanh},
          {Op::PRELU, prelu, 2},
          {Op::RSQRT, rsqrt},
          {Op::GELU, by_fitted_table},
          {Op::HARD_SWISH, by_fitted_table},
          {Op::ELU, by_fitted_table},
          {Op::EXP, by_fitted_table},
          {Op::LOG, by_fitted_table},
          {Op::SQRT, by_fitted_table},
          {Op::ABS, by_fitted_table},
          {Op::RELU_0_TO_1, by_fitted_table},
          {Op::LEAKY_RELU, by_fitted_table},
          {Op::DIV, by_fitted_table},
          {Op::ReefFunction, by_fitted_table},
          {Op::SQUARED_DIFFERENCE, squared_difference, 2}};
}

}  // namespace reef::reference
