// SPDX-License-Identifier: Apache-2.0
#include "report/documents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "execute/cpu/evaluate.h"
#include "ir/model.h"
#include "ops/table_functions.h"

namespace reef::report {
namespace {

constexpr std::string_view kTableHead = R"(# Functions by activation table

Generated from `src/ops/table_functions.cpp`; do not edit. The Edge TPU evaluates a function of one variable by eight polynomials of degree
four. Google's programs have tables for LOGISTIC, TANH, EXP inside of SOFTMAX and 1/sqrt(x); for the functions below Reef fits a table for the
operator's scales (`src/numeric/table_fit.h`) and computes its error in the chip's own arithmetic at all 256 codes, before anything is given
to the chip. No such table has run on silicon.

Inputs are int8 over the given range, outputs int8 over the range of the results. Distances are in steps of the output:

- *table*: from the function to the table's value, before it is rounded;
- *chip* and *TFLite*: from the function to the rounded result of the chip and of TFLite's 8-bit kernel (the current release's reference
  kernels). Rounding alone gives 0.5;
- *differ*: codes at which the two are not the same, of 256, and by how much at most.

An operator runs on the chip by a table where *table* is at most 0.25 and no result is further than one from TFLite's (rewrites `by-table`,
`function-table` and `one-pass`). SiLU is LOGISTIC and MUL in TFLite, which round twice. Functions with small letters have no operator of their
own in TFLite: exporters write them as chains, `reef quantize` keeps a chain in float32 between two 8-bit tensors, and the rewrite
`function-table` makes one pass of it. Beside them, *TFLite* is the float32 result, rounded once.

| function | input | table | chip | TFLite | differ |
| --- | --- | ---: | ---: | ---: | --- |
)";

struct Range {
  double low, high;
};
constexpr std::array<Range, 8> kRanges = {
    {{-0.5, 0.5}, {-1, 1}, {-3, 3}, {-6, 6}, {-10, 10}, {-2, 8}, {-8, 2}, {-4, 30}}};
constexpr std::array<Range, 8> kPositive = {{{0, 0.5}, {0, 1}, {0, 3}, {0, 6}, {0, 10}, {0, 20}, {0, 50}, {0, 200}}};

struct Row {
  std::string_view name;
  OpName op;  // empty: TFLite has none
  std::function<double(double)> function;
  bool is_positive = false;
  const char* flag = nullptr;  // an attribute that is true
};

ops::ChipAffine affine_of(Range range) {
  range = {std::min(range.low, 0.0), std::max(range.high, 0.0)};
  const auto scale = static_cast<float>(std::max(range.high - range.low, 1e-6) / 255);
  return {scale, static_cast<int>(std::clamp(std::nearbyint(-range.low / static_cast<double>(scale)), 0.0, 255.0))};
}

double real(const ops::ChipAffine& affine, int code) {
  return static_cast<double>(affine.scale) * (code - affine.zero_point);
}

using Values = std::array<double, 256>;  // in steps of the output, with its zero point: codes, before rounding

Values wanted_values(const Row& row, const ops::ChipAffine& in, const ops::ChipAffine& out) {
  Values values{};
  for (int code = 0; code < 256; ++code) {
    const double steps = row.function(real(in, code)) / static_cast<double>(out.scale) + out.zero_point;
    values[at(code)] = std::clamp(steps, 0.0, 255.0);
  }
  return values;
}

std::int32_t add_tensor(ir::Subgraph& graph, const ops::ChipAffine& affine) {
  ir::Tensor tensor;
  tensor.name = fmt::format("t{}", graph.tensors.size());
  tensor.type = ir::DataType::kInt8;
  tensor.shape = {1, 256};
  tensor.quantization.scale = {affine.scale};
  tensor.quantization.zero_point = {affine.zero_point - 128};
  graph.tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(graph.tensors.size()) - 1;
}

ir::Operator operator_of(const Row& row) {
  ir::Operator op;
  op.type = row.op;
  if (row.flag != nullptr) op.attributes.set(row.flag, true);
  if (row.op == Op::LEAKY_RELU) op.attributes.set("alpha", 0.1);
  if (row.op == Op::MUL) op.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  return op;
}

// TFLite's codes for all inputs.
std::optional<Values> tflite_values(const Row& row, const ops::ChipAffine& in, const ops::ChipAffine& out) {
  ir::Model model;
  model.buffers.resize(1);
  model.subgraphs.emplace_back();
  ir::Subgraph& graph = model.subgraphs[0];
  const std::int32_t x = add_tensor(graph, in), y = add_tensor(graph, out);
  ir::Operator op = operator_of(row);
  op.inputs = {x};
  op.outputs = {y};
  if (row.op == Op::MUL) {
    const std::int32_t gate = add_tensor(graph, {1.0f / 256, 0});
    ir::Operator logistic;
    logistic.type = name_of(Op::LOGISTIC);
    logistic.inputs = {x};
    logistic.outputs = {gate};
    graph.operators.push_back(std::move(logistic));
    op.inputs = {x, gate};
  }
  graph.operators.push_back(std::move(op));
  graph.inputs = {x};
  graph.outputs = {y};
  std::vector<std::uint8_t> codes(256);
  for (int code = 0; code < 256; ++code) codes[at(code)] = static_cast<std::uint8_t>(code - 128);
  const std::vector<std::vector<std::uint8_t>> inputs = {codes};
  const auto outputs = cpu::Evaluator()(std::move(model), inputs);
  if (!outputs.ok() || outputs->size() != 1 || (*outputs)[0].bytes.size() != 256) return {};
  Values values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int8_t>((*outputs)[0].bytes[i]) + 128;
  }
  return values;
}

// QUANTIZE of a float result: halves go away from zero.
std::optional<Values> rounded(Values values, int zero_point) {
  for (double& value : values) value = std::round(value - zero_point) + zero_point;
  return values;
}

numeric::TableFit fit_of(const Row& row, const ops::ChipAffine& in, const ops::ChipAffine& out) {
  if (!row.op.empty()) {
    ir::Operator marked = operator_of(row);
    if (row.op == Op::MUL) {
      marked.attributes.set(ops::kSiluOperand, std::int64_t{0});
    } else {
      marked.attributes.set(ops::kByTable, true);
    }
    return ops::table_fit(marked, in, out);
  }
  numeric::CodeValues values{};
  for (int code = 0; code < 256; ++code) {
    values[at(code)] = row.function(real(in, code)) / static_cast<double>(out.scale);
  }
  return numeric::fit_table(values, in.scale, in.zero_point, out.zero_point);
}

double largest_distance(const Values& a, const Values& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

std::string text_of(const Row& row, const Range& range) {
  const ops::ChipAffine in = affine_of(range);
  Range results = {0, 0};
  for (int code = 0; code < 256; ++code) {
    const double y = row.function(real(in, code));
    if (std::isfinite(y)) results = {std::min(results.low, y), std::max(results.high, y)};
  }
  const ops::ChipAffine out = affine_of(results);
  const numeric::TableFit fit = fit_of(row, in, out);
  const Values wanted = wanted_values(row, in, out);
  Values chip{};
  for (int code = 0; code < 256; ++code) {
    const float argument = static_cast<float>(code - in.zero_point) * in.scale;
    chip[at(code)] = numeric::chip_round(fit.function.at(argument), out.zero_point, 255);
  }
  std::string text = fmt::format("| {} | {:g} to {:g} | {:.3f} | {:.3f} |", row.name, range.low, range.high, fit.error,
                                 largest_distance(chip, wanted));
  const std::optional<Values> tflite = row.op.empty() ? rounded(wanted, out.zero_point) : tflite_values(row, in, out);
  if (!tflite) return text + " - | - |\n";
  int differ = 0;
  for (std::size_t i = 0; i < chip.size(); ++i) differ += chip[i] != (*tflite)[i] ? 1 : 0;
  text += fmt::format(" {:.3f} | {}", largest_distance(*tflite, wanted), differ);
  return text + (differ == 0 ? " |\n" : fmt::format(", by {:g} |\n", largest_distance(chip, *tflite)));
}

std::vector<Row> rows() {
  std::vector<Row> all = {
      {"GELU", Op::GELU, nullptr},
      {"GELU by tanh", Op::GELU, nullptr, false, "approximate"},
      {"SiLU", Op::MUL, [](double x) { return x / (1 + std::exp(-x)); }},
      {"HARD_SWISH", Op::HARD_SWISH, nullptr},
      {"ELU", Op::ELU, nullptr},
      {"LEAKY_RELU, 0.1", Op::LEAKY_RELU, nullptr},
      {"EXP", Op::EXP, nullptr},
      {"LOG", Op::LOG, nullptr, true},
      {"SQRT", Op::SQRT, nullptr, true},
      {"ABS", Op::ABS, nullptr},
      {"RELU_0_TO_1", Op::RELU_0_TO_1, nullptr},
      {"softplus", {}, [](double x) { return std::log1p(std::exp(x)); }},
      {"Mish", {}, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"log-sigmoid", {}, [](double x) { return -std::log1p(std::exp(-x)); }},
      {"CELU, 0.5", {}, [](double x) { return x < 0 ? 0.5 * std::expm1(x / 0.5) : x; }},
      {"SELU", {}, [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x); }},
      {"quick GELU", {}, [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
      {"tanh-shrink", {}, [](double x) { return x - std::tanh(x); }},
      {"softsign", {}, [](double x) { return x / (1 + std::fabs(x)); }},
      {"erf", {}, [](double x) { return std::erf(x); }},
      {"sin", {}, [](double x) { return std::sin(x); }},
      {"cos", {}, [](double x) { return std::cos(x); }},
      {"exp(-x^2)", {}, [](double x) { return std::exp(-x * x); }},
      {"x^2", {}, [](double x) { return x * x; }},
      {"x^3", {}, [](double x) { return x * x * x; }},
      {"1 / sqrt(x + 0.01)", {}, [](double x) { return 1 / std::sqrt(std::max(x, 0.0) + 0.01); }, true},
      {"log(1 + x)", {}, [](double x) { return std::log1p(std::max(x, 0.0)); }, true},
  };
  for (Row& row : all) {
    if (!row.function) row.function = ops::unary_function(operator_of(row));
  }
  return all;
}

}  // namespace

std::string table_reference() {
  std::string text(kTableHead);
  for (const Row& row : rows()) {
    for (const Range& range : row.is_positive ? kPositive : kRanges) text += text_of(row, range);
  }
  return text;
}

}  // namespace reef::report
