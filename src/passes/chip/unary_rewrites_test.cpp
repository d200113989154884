// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor: replacements compared with the original on every value.
#include <cmath>

#include "ops/table_functions.h"
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

// How a converter stores the results of `function` on the range of `in`.
Affine8 calibrated(const Affine8& in, double (*function)(double)) {
  double low = 0, high = 0;
  for (int q = in.lowest(); q <= in.highest(); ++q) {
    const double y = function(static_cast<double>(in.scale) * (q - in.zero_point));
    low = std::min(low, y);
    high = std::max(high, y);
  }
  Affine8 out{in.type, static_cast<float>(std::max(high - low, 1e-3) / 255), 0};
  out.zero_point =
      std::clamp(static_cast<int>(std::lround(out.lowest() - low / out.scale)), out.lowest(), out.highest());
  return out;
}

double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double elu(double x) { return x > 0 ? x : std::expm1(x); }
double leaky(double x) { return x > 0 ? x : 0.1 * x; }
double absolute(double x) { return std::abs(x); }

struct Case {
  const char* type;
  const char* options;
  double (*function)(double);
  bool has_uint8;
};
constexpr Case kCases[] = {{"HARD_SWISH", "HardSwishOptions", hard_swish, true},
                           {"ELU", "", elu, false},
                           {"LEAKY_RELU", "LeakyReluOptions", leaky, true},
                           {"ABS", "AbsOptions", absolute, false}};

ir::Model unary_model(const Case& each, const Affine8& in, const ir::Shape& shape) {
  ModelBuilder builder;
  const std::int32_t x = builder.input(shape, in);
  ir::Attributes attributes;
  if (std::string(each.type) == "LEAKY_RELU") attributes.set("alpha", 0.1);
  const std::int32_t y = builder.add(each.type, each.options, attributes, {x}, shape, calibrated(in, each.function));
  return builder.finish({y});
}

TEST(UnaryRewrites, ReplacementsAreWithinOneStepOnEveryValue) {
  std::mt19937 random(1);
  for (const Case& each : kCases) {
    int made = 0, ops = 0;
    constexpr int kTries = 60;
    for (int i = 0; i < kTries; ++i) {
      const bool is_unsigned = each.has_uint8 && i % 3 == 0;
      const Affine8 in = random_affine(random, is_unsigned ? DataType::kUInt8 : DataType::kInt8);
      const ir::Model model = unary_model(each, in, i % 2 == 0 ? ir::Shape({1, 4, 16, 5}) : ir::Shape({1, 320}));
      const Rewritten result = rewritten(model, standard_options());
      ASSERT_EQ(result.applications.size(), 1u) << each.type;
      const Application& application = result.applications[0];
      if (!application.made) {
        EXPECT_GT(application.largest_difference, kLargestDifference);
        EXPECT_EQ(result.model, model);
        continue;
      }
      ++made;
      ops += static_cast<int>(result.model.subgraphs[0].operators.size());
      EXPECT_EQ(count_ops(result.model, each.type), 0u);
      const int found = difference(model, result.model, 7);
      EXPECT_EQ(found, application.largest_difference) << application.what;
      EXPECT_LE(found, kLargestDifference);
    }
    // Some inputs are nearly all negative, where results are small and take more pieces than are worth it.
    EXPECT_GE(made, kTries * 8 / 10) << each.type;
    EXPECT_LE(ops, 14 * made) << each.type;
  }
}

// Where the chip may compute operators by table, they stay and are marked.
TEST(UnaryRewrites, FunctionsByTableStayAsTheyAre) {
  std::mt19937 random(2);
  RewriteOptions options = standard_options();
  options.fits = for_each_op([](const ir::Model& model, std::int32_t index) {
    const ir::Operator& op = model.subgraphs[0].operators[at(index)];
    return fits_the_chip(model, index) || ops::has_table(op);
  });
  for (const Case& each : kCases) {
    int by_table = 0;
    constexpr int kTries = 30;
    for (int i = 0; i < kTries; ++i) {
      const Affine8 in = random_affine(random, DataType::kInt8);
      const ir::Model model = unary_model(each, in, {1, 4, 16, 5});
      const Rewritten result = rewritten(model, options);
      ASSERT_FALSE(result.applications.empty()) << each.type;
      EXPECT_LE(result.applications[0].largest_difference, kLargestDifference);
      const ir::Operator& op = result.model.subgraphs[0].operators[0];
      if (result.applications[0].rewrite != "by-table") continue;
      ++by_table;
      EXPECT_EQ(op.type, each.type);
      EXPECT_TRUE(op.attributes.get_bool(ops::kByTable));
      EXPECT_EQ(result.model.subgraphs[0].operators.size(), 1u);
    }
    EXPECT_GE(by_table, kTries * 8 / 10) << each.type;
  }
}

}  // namespace
}  // namespace reef::passes
