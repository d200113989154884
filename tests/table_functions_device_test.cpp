// SPDX-License-Identifier: Apache-2.0
// Functions by tables of Reef's own through the code generator and the virtual device: outputs must be those of the
// chip reference to the last bit, and within one of TFLite's kernels.
#include <cmath>

#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "ops/table_functions.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

void expect_exact(const ir::Model& model, unsigned seed, int most) {
  for (const tiled::Level level : {tiled::Level::kBetter, tiled::Level::kAsGoogle}) {
    const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const Status status = runs_as_chip_reference(model, *package, seed);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  const auto distance = distance_from_tflite(model, seed);
  ASSERT_TRUE(distance.ok()) << distance.status().message();
  EXPECT_LE(*distance, most);
}

ir::Model function_model(std::string_view op, Quantized in, Quantized out, unsigned seed) {
  QuantizedModel model(in);
  ir::Attributes a;
  std::string_view options;
  if (op == "GELU") {
    a.set("approximate", seed % 2 == 1);
    options = "GeluOptions";
  } else {
    a.set(ops::kByTable, true);
  }
  if (op == "LEAKY_RELU") a.set("alpha", 0.1);
  const std::int32_t x = model.input({1, 7, 9, 20});
  return model.finish({model.op(op, {x}, {model.computed(model.shape(x), out)}, options, a)});
}

TEST(TableFunctionsDevice, AreExactAndNearTflite) {
  constexpr auto kInt8 = ir::DataType::kInt8;
  const Quantized kIn[] = {{kInt8, 0.05f, 3}, {kInt8, 0.02f, -20}, {kInt8, 0.11f, 40}, {kInt8, 0.3f, -100}};
  const Quantized kOut[] = {{kInt8, 0.04f, -90}, {kInt8, 0.015f, -5}, {kInt8, 0.07f, -128}, {kInt8, 0.2f, -128}};
  for (const std::string_view op : {"GELU", "HARD_SWISH", "ELU", "LEAKY_RELU", "ABS", "EXP", "RELU_0_TO_1"}) {
    for (unsigned seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(std::string(op) + " " + std::to_string(seed));
      expect_exact(function_model(op, kIn[seed % 4], kOut[(seed + seed / 4) % 4], seed), seed, 1);
    }
  }
}

// Softplus and a sine, as the rewrite `function-table` leaves them: values that are not rounded, and TFLite's codes.
TEST(TableFunctionsDevice, FunctionsThatCarryTheirValues) {
  constexpr auto kInt8 = ir::DataType::kInt8;
  double (*const kFunctions[])(double) = {[](double x) { return std::log1p(std::exp(x)); },
                                          [](double x) { return std::sin(x); }};
  const Quantized in{kInt8, 0.04f, -10}, out{kInt8, 0.05f, -100};
  for (unsigned seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<double> values;
    std::vector<std::int64_t> codes;
    for (int q = -128; q < 128; ++q) {
      values.push_back(kFunctions[seed % 2](static_cast<double>(in.scale) * (q - in.zero_point)));
      const double steps = std::round(values.back() / static_cast<double>(out.scale)) + out.zero_point;
      codes.push_back(static_cast<std::int64_t>(std::clamp(steps, -128.0, 127.0)));
    }
    ir::Attributes attributes;
    attributes.set(ops::kCodes, codes);
    attributes.set(ops::kValues, values);
    QuantizedModel model(in);
    const std::int32_t x = model.input(seed < 2 ? ir::Shape({1, 7, 9, 20}) : ir::Shape({1, 13, 24}));
    const std::int32_t y =
        model.op(std::string(name_of(Op::ReefFunction)), {x}, {model.computed(model.shape(x), out)}, "", attributes);
    model.last_op().builtin_code = ir::kCustomBuiltinCode;
    expect_exact(model.finish({y}), seed, 1);
  }
}

// A SiLU that the rewrite `one-pass` has marked: LOGISTIC computes nothing, unless somebody else reads it.
TEST(TableFunctionsDevice, SiluInOnePass) {
  for (const bool is_read_elsewhere : {false, true}) {
    SCOPED_TRACE(is_read_elsewhere);
    QuantizedModel model(Quantized{ir::DataType::kInt8, 0.04f, -10});
    const std::int32_t x = model.conv(model.input({1, 6, 10, 8}), 12, 3);
    const std::int32_t gate = model.logistic(x);
    const std::int32_t y = model.mul(gate, x);
    model.last_op().attributes.set(ops::kSiluOperand, std::int64_t{1});
    std::vector<std::int32_t> outputs = {model.conv(y, 5, 3)};
    if (is_read_elsewhere) outputs.push_back(gate);
    expect_exact(model.finish(outputs), 3, 255);  // TFLite has two roundings, and a layer behind them
  }
}

TEST(TableFunctionsDevice, SiluTakesOnePass) {
  const auto steps_of = [](bool is_marked) {
    QuantizedModel model(Quantized{ir::DataType::kInt8, 0.04f, -10});
    const std::int32_t x = model.input({1, 8, 8, 64});
    const std::int32_t y = model.mul(x, model.logistic(x));
    if (is_marked) model.last_op().attributes.set(ops::kSiluOperand, std::int64_t{0});
    const ir::Model made = model.finish({y});
    const auto package = compiler::generate_code_with(WholeModel(made).part(1), {});
    EXPECT_TRUE(package.ok()) << package.status().message();
    const auto program = program_of(*package, darwinn::ExecutableType::kStandAlone);
    return program.ok() ? program->size() : 0;
  };
  EXPECT_LT(steps_of(true), steps_of(false));
}

}  // namespace
}  // namespace reef::testing
