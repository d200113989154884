// SPDX-License-Identifier: Apache-2.0
#include "ops/table_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <variant>
#include <vector>

namespace reef::ops {
namespace {

double gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
double silu(double x) { return x / (1 + std::exp(-x)); }
double table_functions_hard_swish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }
double table_functions_elu(double x) { return x < 0 ? std::expm1(x) : x; }
// TFLite's 8-bit LOG gives the lowest output for what has no logarithm, and its SQRT refuses negative numbers.
double logarithm(double x) { return x > 0 ? std::log(x) : -std::numeric_limits<double>::infinity(); }
double root(double x) { return std::sqrt(std::max(x, 0.0)); }
double magnitude(double x) { return std::fabs(x); }
double exponential(double x) { return std::exp(x); }
double zero_to_one(double x) { return std::clamp(x, 0.0, 1.0); }

struct UnaryFunction {
  Op op;
  double (*function)(double);
};
constexpr auto kUnaryFunctions = std::to_array<UnaryFunction>({
    {Op::HARD_SWISH, table_functions_hard_swish},
    {Op::ELU, table_functions_elu},
    {Op::EXP, exponential},
    {Op::LOG, logarithm},
    {Op::SQRT, root},
    {Op::ABS, magnitude},
    {Op::RELU_0_TO_1, zero_to_one},
});

std::int64_t silu_operand(const ir::Operator& op) {
  return op.type == Op::MUL ? op.attributes.get_int(kSiluOperand, -1) : -1;
}

// 0: the operator is no such division.
double numerator_of(const ir::Operator& op) { return op.type == Op::DIV ? op.attributes.get_float(kNumerator, 0) : 0; }

// The values that a ReefFunction carries; null: it is none.
const std::vector<double>* carried_values(const ir::Operator& op) {
  if (op.type != Op::ReefFunction) return nullptr;
  const ir::AttributeValue* value = op.attributes.find(kValues);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  return list != nullptr && list->size() == std::tuple_size_v<numeric::CodeValues> ? list : nullptr;
}

// The function of real numbers that an operator other than a ReefFunction is, if the chip has it by such a table; null:
// it is none.
std::function<double(double)> table_function(const ir::Operator& op) {
  if (op.is_custom()) return nullptr;
  if (op.type == Op::GELU || op.attributes.get_bool(kByTable)) return unary_function(op);
  if (silu_operand(op) >= 0) return silu;
  if (const double numerator = numerator_of(op); numerator != 0) {
    constexpr double kAnyNumber = std::numeric_limits<double>::quiet_NaN();
    return [numerator](double x) { return x == 0 ? kAnyNumber : numerator / x; };
  }
  return nullptr;
}

// The float32 scale is what a zero point and a code are multiplied with, here and on the chip.
numeric::CodeValues values_of(const ir::Operator& op, const ChipAffine& in, const ChipAffine& out) {
  numeric::CodeValues values{};
  if (const std::vector<double>* carried = carried_values(op)) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (*carried)[i] / static_cast<double>(out.scale);
    return values;
  }
  const std::function<double(double)> function = table_function(op);
  for (int code = 0; code < 256; ++code) {
    const double value =
        function(static_cast<double>(in.scale) * (code - in.zero_point)) / static_cast<double>(out.scale);
    values[at(code)] = value;
  }
  return values;
}

}  // namespace

std::function<double(double)> unary_function(const ir::Operator& op) {
  if (op.is_custom()) return nullptr;
  if (op.type == Op::GELU) return op.attributes.get_bool("approximate") ? gelu_by_tanh : gelu;
  if (op.type == Op::LEAKY_RELU) {
    const double alpha = op.attributes.get_float("alpha");
    return [alpha](double x) { return x > 0 ? x : alpha * x; };
  }
  const auto* known = std::find_if(kUnaryFunctions.begin(), kUnaryFunctions.end(),
                                   [&](const UnaryFunction& row) { return row.op == op.type; });
  return known == kUnaryFunctions.end() ? nullptr : known->function;
}

bool has_table(const ir::Operator& op) { return carried_values(op) != nullptr || table_function(op) != nullptr; }

int first_runtime(const OpDef& definition, const ir::Operator& op) {
  if (definition.chip.first_runtime != 0) return definition.chip.first_runtime;
  return has_table(op) ? kOldestRuntime : 0;
}

std::size_t table_operand(const ir::Operator& op) { return silu_operand(op) == 1 || numerator_of(op) != 0 ? 1 : 0; }

// Checks come in thousands, of the same few operators: what was found last is kept, by thread, so that nothing locks.
numeric::TableFit table_fit(const ir::Operator& op, const ChipAffine& in, const ChipAffine& out) {
  using Key = std::tuple<std::string, bool, double, double, ChipAffine, ChipAffine, std::vector<double>>;
  constexpr std::size_t kMostKept = 256;
  thread_local std::map<Key, numeric::TableFit> kept;
  const std::vector<double>* carried = carried_values(op);
  Key key{op.type,
          op.attributes.get_bool("approximate"),
          op.attributes.get_float("alpha"),
          numerator_of(op),
          in,
          out,
          carried == nullptr ? std::vector<double>() : *carried};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  numeric::TableFit fit = numeric::fit_table(values_of(op, in, out), in.scale, in.zero_point, out.zero_point);
  if (kept.size() >= kMostKept) kept.clear();
  kept.emplace(std::move(key), fit);
  return fit;
}

}  // namespace reef::ops
