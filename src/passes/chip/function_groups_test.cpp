// SPDX-License-Identifier: Apache-2.0
// Groups of operators that together are a function of one tensor, and the polygons that replace functions.
#include <cmath>

#include "graph/written_out_functions.h"
#include "ops/table_functions.h"
#include "passes/chip/ramps.h"
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

const ir::Shape kShape = {1, 4, 16, 5};

class FloatIsland {
 public:
  explicit FloatIsland(const Affine8& in) {
    x_ = builder_.input(kShape, in);
    x_float_ = real();
    builder_.ops().add("DEQUANTIZE", "DequantizeOptions", {}, {x_}, {x_float_}, DataType::kInt8);
  }
  std::int32_t x() const { return x_float_; }
  std::int32_t unary(const char* type, std::int32_t x) {
    const std::int32_t y = real();
    builder_.ops().add(type, "", {}, {x}, {y}, DataType::kFloat32);
    return y;
  }
  std::int32_t binary(const char* type, const char* options, std::int32_t a, std::int32_t b) {
    const std::int32_t y = real();
    ir::Attributes attributes;
    attributes.set("fused_activation_function", ir::EnumName{"NONE"});
    builder_.ops().add(type, options, attributes, {a, b}, {y}, DataType::kFloat32);
    return y;
  }
  // `above` where x is more than 0, else `below`.
  std::int32_t select(std::int32_t x, std::int32_t above, std::int32_t below) {
    const std::int32_t is_above = builder_.ops().tensor(DataType::kBool, kShape, {}), y = real();
    builder_.ops().add("GREATER", "GreaterOptions", {}, {x, number(0)}, {is_above}, DataType::kFloat32);
    builder_.ops().add("SELECT_V2", "SelectV2Options", {}, {is_above, above, below}, {y}, DataType::kFloat32);
    return y;
  }
  std::int32_t number(float value) {
    ir::Tensor tensor;
    tensor.name = "number";
    std::vector<std::uint8_t> bytes(4);
    std::memcpy(bytes.data(), &value, 4);
    return builder_.edit().add_constant(std::move(tensor), std::move(bytes));
  }
  ir::Model finish(std::int32_t y, const Affine8& out) {
    const std::int32_t stored = builder_.ops().tensor(kShape, out);
    builder_.ops().add("QUANTIZE", "QuantizeOptions", {}, {y}, {stored}, DataType::kFloat32);
    return builder_.finish({stored});
  }

 private:
  std::int32_t real() { return builder_.ops().tensor(DataType::kFloat32, kShape, {}); }

  ModelBuilder builder_;
  std::int32_t x_ = -1, x_float_ = -1;
};

void expect_replaced(const ir::Model& model, std::string_view rewrite) {
  const Rewritten result = rewritten(model, standard_options());
  ASSERT_FALSE(result.applications.empty()) << rewrite;
  EXPECT_EQ(result.applications[0].rewrite, rewrite);
  // Only "one-pass" may follow: it marks LOGISTIC and MUL for the chip and leaves what the CPU computes as it is.
  for (std::size_t i = 1; i < result.applications.size(); ++i) EXPECT_EQ(result.applications[i].rewrite, "one-pass");
  ASSERT_TRUE(result.applications[0].made) << result.applications[0].what;
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) EXPECT_NE(tensor.type, DataType::kFloat32);
  const int found = difference(model, result.model, 2);
  EXPECT_LE(found, kLargestDifference) << result.applications[0].what;
  EXPECT_EQ(found, result.applications[0].largest_difference) << result.applications[0].what;
}

constexpr Affine8 kIn = {DataType::kInt8, 8.0f / 255, 0};

TEST(FunctionGroupRewrites, SiluThroughFloats) {
  FloatIsland island(kIn);
  const std::int32_t sigmoid = island.unary("LOGISTIC", island.x());
  const std::int32_t y = island.binary("MUL", "MulOptions", island.x(), sigmoid);
  expect_replaced(island.finish(y, {DataType::kInt8, 4.3f / 255, -111}), "silu");
}

TEST(FunctionGroupRewrites, MishAndSoftplusThroughFloats) {
  for (const bool mish : {false, true}) {
    FloatIsland island(kIn);
    const std::int32_t grown = island.binary("ADD", "AddOptions", island.unary("EXP", island.x()), island.number(1));
    const std::int32_t softplus = island.unary("LOG", grown);
    if (!mish) {
      expect_replaced(island.finish(softplus, {DataType::kInt8, 4.1f / 255, -128}), "unary");
      continue;
    }
    const std::int32_t y = island.binary("MUL", "MulOptions", island.x(), island.unary("TANH", softplus));
    expect_replaced(island.finish(y, {DataType::kInt8, 4.4f / 255, -110}), "unary");
  }
}

// An oriented box turns by an angle: one DEQUANTIZE serves both functions.
TEST(FunctionGroupRewrites, SineAndCosineOfOneAngle) {
  constexpr Affine8 kAngle = {DataType::kInt8, 3.2f / 255, -64}, kUnit = {DataType::kInt8, 2.0f / 255, 0};
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t x = builder.input(kShape, kAngle), angle = ops.tensor(DataType::kFloat32, kShape, {});
  ops.add("DEQUANTIZE", "DequantizeOptions", {}, {x}, {angle}, DataType::kInt8);
  std::vector<std::int32_t> outputs;
  for (const char* type : {"SIN", "COS"}) {
    const std::int32_t y = ops.tensor(DataType::kFloat32, kShape, {});
    ops.add(type, "", {}, {angle}, {y}, DataType::kFloat32);
    outputs.push_back(ops.tensor(kShape, kUnit));
    ops.add("QUANTIZE", "QuantizeOptions", {}, {y}, {outputs.back()}, DataType::kFloat32);
  }
  const ir::Model model = builder.finish(outputs);
  const Rewritten result = rewritten(model, standard_options());
  for (const ir::Tensor& tensor : result.model.subgraphs[0].tensors) EXPECT_NE(tensor.type, DataType::kFloat32);
  EXPECT_LE(difference(model, result.model, 2), kLargestDifference);
}

// SELU as TensorFlow's converter writes it: a condition beside the function that it selects.
TEST(FunctionGroupRewrites, SeluThroughAChoice) {
  FloatIsland island(kIn);
  const std::int32_t grown = island.binary("SUB", "SubOptions", island.unary("EXP", island.x()), island.number(1));
  const std::int32_t below = island.binary("MUL", "MulOptions", grown, island.number(1.7581f));
  const std::int32_t above = island.binary("MUL", "MulOptions", island.x(), island.number(1.0507f));
  const std::int32_t y = island.select(island.x(), above, below);
  expect_replaced(island.finish(y, {DataType::kInt8, 6.0f / 255, -55}), "unary");
}

RewriteOptions options_with_tables() {
  RewriteOptions options = standard_options();
  options.fits = for_each_op([](const ir::Model& model, std::int32_t index) {
    const ir::Operator& op = model.subgraphs[0].operators[at(index)];
    return fits_the_chip(model, index) || ops::has_table(op);
  });
  return options;
}

// A function between 8-bit tensors: how its operators make it of x, and what it is.
struct TableCase {
  const char* name;
  std::function<std::int32_t(FloatIsland&)> make;
  double (*function)(double);
};

std::vector<TableCase> table_cases() {
  const auto softplus = [](FloatIsland& f) {
    return f.unary("LOG", f.binary("ADD", "AddOptions", f.unary("EXP", f.x()), f.number(1)));
  };
  return {
      {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }},
      {"Mish",
       [softplus](FloatIsland& f) { return f.binary("MUL", "MulOptions", f.x(), f.unary("TANH", softplus(f))); },
       [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"sin", [](FloatIsland& f) { return f.unary("SIN", f.x()); }, [](double x) { return std::sin(x); }},
      {"quick GELU",
       [](FloatIsland& f) {
         const std::int32_t steep = f.binary("MUL", "MulOptions", f.x(), f.number(1.702f));
         return f.binary("MUL", "MulOptions", f.x(), f.unary("LOGISTIC", steep));
       },
       [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
      {"SELU",
       [](FloatIsland& f) {
         const std::int32_t grown = f.binary("SUB", "SubOptions", f.unary("EXP", f.x()), f.number(1));
         return f.select(f.x(), f.binary("MUL", "MulOptions", f.x(), f.number(1.0507f)),
                         f.binary("MUL", "MulOptions", grown, f.number(1.7581f)));
       },
       [](double x) { return x > 0 ? 1.0507 * x : 1.7581 * std::expm1(x); }},
      {"1 / (1 + |x|)",
       [](FloatIsland& f) {
         const std::int32_t below = f.binary("ADD", "AddOptions", f.unary("ABS", f.x()), f.number(1));
         return f.binary("DIV", "DivOptions", f.number(1), below);
       },
       [](double x) { return 1 / (1 + std::fabs(x)); }},
  };
}

// Stores all that the function gives on the range of `in`.
Affine8 range_of(double (*function)(double), const Affine8& in) {
  double low = 0, high = 0;
  for (int q = in.lowest(); q <= in.highest(); ++q) {
    const double y = function(static_cast<double>(in.scale) * (q - in.zero_point));
    low = std::min(low, y);
    high = std::max(high, y);
  }
  const auto scale = static_cast<float>((high - low) / 255);
  return {in.type, scale, static_cast<std::int32_t>(std::lround(in.lowest() - low / static_cast<double>(scale)))};
}

// In the place of the whole group stands one operator; written out for a CPU it gives the same codes as the group, and
// the chip's table is within a step of them.
TEST(FunctionTables, TakeTheWholeGroup) {
  for (const TableCase& each : table_cases()) {
    for (const Affine8& in : {kIn, Affine8{DataType::kInt8, 0.011f, -40}, Affine8{DataType::kInt8, 0.05f, 90}}) {
      SCOPED_TRACE(fmt::format("{} scale {}", each.name, in.scale));
      FloatIsland island(in);
      const std::int32_t y = each.make(island);
      const ir::Model model = island.finish(y, range_of(each.function, in));
      Rewritten result = rewritten(model, options_with_tables());
      ASSERT_FALSE(result.applications.empty());
      EXPECT_EQ(result.applications[0].rewrite, "function-table") << result.applications[0].what;
      EXPECT_LE(result.applications[0].largest_difference, kLargestDifference);
      EXPECT_EQ(op_types(result.model), std::vector<std::string>{"ReefFunction"});
      EXPECT_EQ(difference(model, result.model, 2), 0) << "on the CPU";
      ASSERT_TRUE(graph::write_out_functions(result.model).ok());
      EXPECT_EQ(op_types(result.model), (std::vector<std::string>{"CAST", "ADD", "GATHER"}));
      EXPECT_EQ(difference(model, result.model, 2), 0) << "written out";
      leave_pair(model, result.model, 0);
    }
  }
}

// The real numbers that a table is fitted to are not rounded on the way.
TEST(FunctionTables, AreFittedToRealNumbers) {
  for (const TableCase& each : table_cases()) {
    FloatIsland island(kIn);
    const std::int32_t y = each.make(island);
    const Rewritten result = rewritten(island.finish(y, range_of(each.function, kIn)), options_with_tables());
    ASSERT_EQ(result.model.subgraphs[0].operators.size(), 1u);
    const auto* found = result.model.subgraphs[0].operators[0].attributes.find(ops::kValues);
    ASSERT_NE(found, nullptr);
    const auto* values = std::get_if<std::vector<double>>(found);
    ASSERT_NE(values, nullptr);
    ASSERT_EQ(values->size(), 256u);
    for (int i = 0; i < 256; ++i) {
      const double x = static_cast<double>(kIn.scale) * (kIn.lowest() + i - kIn.zero_point);
      EXPECT_NEAR((*values)[at(i)], each.function(x), 2e-5) << each.name << " of " << x;
    }
  }
}

// Jumps are no smooth function: eight polynomials do not follow FLOOR, and it stays what it is.
TEST(FunctionTables, AStaircaseGetsNone) {
  FloatIsland island({DataType::kInt8, 0.3f, 0});
  const std::int32_t y = island.unary("FLOOR", island.x());
  const Rewritten result = rewritten(island.finish(y, {DataType::kInt8, 0.3f, 0}), options_with_tables());
  EXPECT_EQ(count_ops(result.model, "ReefFunction"), 0u);
}

TEST(FunctionGroupRewrites, AFunctionOfTwoTensorsIsNone) {
  ModelBuilder builder;
  const std::int32_t a = builder.input(kShape, kIn), b = builder.input(kShape, kIn);
  const std::int32_t y = builder.add("SQUARED_DIFFERENCE", "SquaredDifferenceOptions", {}, {a, b}, kShape, kIn);
  const ir::Model model = builder.finish({y});
  EXPECT_EQ(rewritten(model, standard_options()).model, model);
}

TEST(FunctionGroupRewrites, ChannelsWithNumbersOfTheirOwnAreNoFunction) {
  ModelBuilder builder;
  const std::int32_t x = builder.input(kShape, {DataType::kUInt8, 8.0f / 255, 128});
  std::vector<std::uint8_t> numbers = {200, 100, 50, 25, 12};
  const std::int32_t divisors = builder.ops().weights({1, 1, 1, 5}, DataType::kUInt8, numbers, {0.01f}, 0, 0);
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t y =
      builder.add("DIV", "DivOptions", attributes, {x, divisors}, kShape, {DataType::kUInt8, 40.0f / 255, 128});
  const ir::Model model = builder.finish({y});
  EXPECT_EQ(rewritten(model, standard_options()).model, model);
}

TEST(FunctionGroupRewrites, DivisionByOneNumberIsALine) {
  ModelBuilder builder;
  const std::int32_t x = builder.input(kShape, {DataType::kUInt8, 8.0f / 255, 128});
  const std::int32_t divisor = builder.ops().filled({1}, {DataType::kUInt8, 0.01f, 0}, 250);
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t y =
      builder.add("DIV", "DivOptions", attributes, {x, divisor}, kShape, {DataType::kUInt8, 3.3f / 255, 128});
  const ir::Model model = builder.finish({y});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(op_types(result.model), std::vector<std::string>{"DEPTHWISE_CONV_2D"});
  EXPECT_LE(difference(model, result.model, 2), 1);
}

TEST(FunctionGroupRewrites, LeakyReluForOldRuntimesIsAMaximum) {
  for (const double alpha : {0.0, 0.01, 0.3, 1.0, 1.5, -0.2}) {
    ModelBuilder builder;
    const std::int32_t x = builder.input(kShape, kIn);
    ir::Attributes attributes;
    attributes.set("alpha", alpha);
    const std::int32_t y =
        builder.add("LEAKY_RELU", "LeakyReluOptions", attributes, {x}, kShape, {DataType::kInt8, 7.0f / 255, -20});
    const ir::Model model = builder.finish({y});
    RewriteOptions options = standard_options();
    options.runtime = 10;
    options.fits = for_each_op([](const ir::Model& each, std::int32_t op) {
      return each.subgraphs[0].operators[at(op)].type != "PRELU" && fits_the_chip(each, op);
    });
    const Rewritten result = rewritten(model, options);
    ASSERT_EQ(result.applications.size(), 1u) << alpha;
    EXPECT_EQ(count_ops(result.model, "PRELU"), 0u);
    EXPECT_EQ(count_ops(result.model, "LEAKY_RELU"), 0u) << alpha;
    EXPECT_LE(difference(model, result.model, 2), 1) << alpha;
    const Rewritten newer = rewritten(model, standard_options());
    EXPECT_EQ(op_types(newer.model), std::vector<std::string>{"PRELU"}) << alpha;
    EXPECT_LE(difference(model, newer.model, 2), alpha >= 0 ? 0 : 1) << alpha;
  }
}

TEST(Ramps, PolygonKeepsToItsTolerance) {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    PolygonRequest request;
    const double bend = 0.5 + static_cast<double>(random() % 100) / 50,
                 shift = static_cast<double>(random() % 100) / 50 - 1;
    for (int i = 0; i < 256; ++i) {
      const double x = (i - 128) / 48.0;
      request.levels[at(i)] = static_cast<std::int32_t>(std::lround(100 * std::tanh(bend * x + shift) * std::cos(x)));
    }
    for (const double tolerance : {0.0, 0.4, 0.9, 1.3}) {
      request.tolerance = tolerance;
      const auto corners = fit_polygon(request);
      ASSERT_TRUE(corners.has_value());
      EXPECT_EQ(corners->front().index, 0);
      EXPECT_EQ(corners->back().index, 255);
      for (std::size_t k = 0; k + 1 < corners->size(); ++k) {
        const Corner &a = (*corners)[k], &b = (*corners)[k + 1];
        ASSERT_LT(a.index, b.index);
        for (int i = a.index; i <= b.index; ++i) {
          const double value = a.level + static_cast<double>(b.level - a.level) * (i - a.index) / (b.index - a.index);
          EXPECT_LE(std::abs(value - request.levels[at(i)]), tolerance + 1e-9);
        }
      }
    }
  }
}

TEST(Ramps, StraightLinesTakeOnePieceAndCornersTwo) {
  PolygonRequest request;
  request.tolerance = 0.5;
  for (int i = 0; i < 256; ++i) request.levels[at(i)] = i / 2 - 64;
  EXPECT_EQ(fit_polygon(request)->size(), 2u);
  for (int i = 0; i < 256; ++i) request.levels[at(i)] = std::abs(i - 128) - 128;
  EXPECT_EQ(fit_polygon(request)->size(), 3u);
  request.through_level = 50;
  request.must_pass = true;
  EXPECT_FALSE(fit_polygon(request).has_value()) << "no result is near 50";
}

}  // namespace
}  // namespace reef::passes
