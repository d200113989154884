// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL of two computed tensors through the code generator and the virtual device: outputs must be those of the
// chip reference to the last bit, in several orders of execution, and within one of TFLite's.
#include <cmath>

#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

struct Product {
  ir::Shape x, y, out;
  bool adj_x = false, adj_y = false;
  std::int64_t x_zero = -13, y_zero = 4, out_zero = 15;
  int constant = -1;  // which of both

  int depth() const { return x.last(adj_x ? 1 : 0); }
};

ir::Model model_of(const Product& p) {
  QuantizedModel model(Quantized{ir::DataType::kInt8, 0.05f, p.x_zero});
  std::int32_t operands[2];
  for (int k = 0; k < 2; ++k) {
    const ir::Shape& shape = k == 0 ? p.x : p.y;
    operands[k] = p.constant == k ? model.weights(shape, 0.03f) : model.input(shape, k == 0 ? "x" : "y");
  }
  if (p.constant != 1) model.tensor(operands[1]).quantization.zero_point = {p.y_zero};
  const auto scale = static_cast<float>(0.05 * 0.05 * 60 * std::sqrt(double(p.depth())));
  ir::Attributes a;
  a.set("adj_x", p.adj_x);
  a.set("adj_y", p.adj_y);
  return model.finish(
      {model.op("BATCH_MATMUL", {operands[0], operands[1]},
                {model.computed(p.out, {ir::DataType::kInt8, scale, p.out_zero})}, "BatchMatMulOptions", a, 4)});
}

void expect_exact(const Product& product, unsigned seed, tiled::Level level = tiled::Level::kBetter) {
  const ir::Model model = model_of(product);
  const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
  ASSERT_TRUE(package.ok()) << package.status().message();
  const device::Schedule schedule = schedule_of(seed);
  const bool by_timing = level == tiled::Level::kAsGoogle;
  const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto distance = distance_from_tflite(model, seed);
  ASSERT_TRUE(distance.ok()) << distance.status().message();
  EXPECT_LE(*distance, 1);
  if (by_timing) return;
  const Status sound = passes_audit(*package);
  EXPECT_TRUE(sound.ok()) << sound.message();
  const Status races = has_no_races(*package);
  EXPECT_TRUE(races.ok()) << races.message();
}

TEST(MatrixProductDevice, ProductsOfAttention) {
  expect_exact({.x = {1, 4, 64, 32}, .y = {1, 4, 64, 32}, .out = {1, 4, 64, 64}, .adj_y = true}, 1);
  expect_exact({.x = {1, 4, 64, 64}, .y = {1, 4, 64, 32}, .out = {1, 4, 64, 32}}, 2);
  expect_exact({.x = {3, 49, 49}, .y = {3, 49, 20}, .out = {3, 49, 20}}, 3);
}

TEST(MatrixProductDevice, ImagesThatMatricesCutAcrossRows) {
  // 6 x 20 rows lie as an image of 10 x 12: matrices begin within its rows.
  expect_exact({.x = {6, 20, 8}, .y = {6, 30, 8}, .out = {6, 20, 30}, .adj_y = true}, 4);
  expect_exact({.x = {97, 12}, .y = {12, 5}, .out = {97, 5}}, 5);
}

TEST(MatrixProductDevice, RepeatedMatrices) {
  expect_exact({.x = {1, 6, 10, 12}, .y = {1, 1, 9, 12}, .out = {1, 6, 10, 9}, .adj_y = true}, 6);
  expect_exact({.x = {1, 1, 10, 12}, .y = {1, 6, 9, 12}, .out = {1, 6, 10, 9}, .adj_y = true}, 7);
  expect_exact({.x = {5, 10, 12}, .y = {12, 7}, .out = {5, 10, 7}}, 8);
}

// One group of 64 columns takes all the memory that there is for copies, and lines of a matrix would take too much.
TEST(MatrixProductDevice, LargeOperandsInPieces) {
  expect_exact({.x = {1, 8, 100, 64}, .y = {1, 8, 260, 64}, .out = {1, 8, 100, 260}, .adj_y = true}, 9);
  expect_exact({.x = {20, 1500}, .y = {1500, 200}, .out = {20, 200}}, 10);
  expect_exact({.x = {7, 3072}, .y = {70, 3072}, .out = {7, 70}, .adj_y = true}, 11);
}

TEST(MatrixProductDevice, ConstantOperands) {
  expect_exact({.x = {1, 3, 11, 8}, .y = {1, 3, 13, 8}, .out = {1, 3, 11, 13}, .adj_y = true, .constant = 0}, 12);
  expect_exact({.x = {1, 3, 11, 8}, .y = {1, 3, 8, 13}, .out = {1, 3, 11, 13}, .constant = 1}, 13);
}

TEST(MatrixProductDevice, AnyShape) {
  const auto product = [](unsigned seed) {
    RandomChoice choice(seed);
    const int batch = choice.between(1, 9), m = choice.between(1, 90), k = choice.between(1, 130),
              n = choice.between(1, 150);
    const bool x_is_one = choice.likely(15), y_is_one = choice.likely(15), four = choice.likely(60);
    Product p;
    p.adj_x = choice.likely(25);
    p.adj_y = choice.likely(50);
    const auto shape = [&](bool is_one, int rows, int columns, bool adj) {
      const int b = is_one ? 1 : batch;
      if (adj) std::swap(rows, columns);
      return four ? ir::Shape{1, b, rows, columns} : ir::Shape{b, rows, columns};
    };
    p.x = shape(x_is_one, m, k, p.adj_x);
    p.y = shape(y_is_one, k, n, p.adj_y);
    p.out = shape(x_is_one && y_is_one, m, n, false);
    p.x_zero = choice.among({-128, -13, 0, 127});
    p.y_zero = choice.among({-128, 0, 5, 127});
    p.out_zero = choice.among({-128, 0, 15});
    return p;
  };
  const Seeds seeds = seeds_to_try(24);
  for (unsigned seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_exact(product(seed), seed, seed % 4 == 3 ? tiled::Level::kAsGoogle : tiled::Level::kBetter);
  }
}

TEST(MatrixProductDevice, TooDeepSumsAreRefused) {
  const ir::Model model = model_of({.x = {4, 3201}, .y = {3201, 4}, .out = {4, 4}});
  const auto package = compiler::generate_code_with(WholeModel(model).part(1), {});
  ASSERT_FALSE(package.ok());
  EXPECT_NE(package.status().message().find("3201 products"), std::string::npos) << package.status().message();
}

}  // namespace
}  // namespace reef::testing
