// SPDX-License-Identifier: Apache-2.0
// Operators of an image and one number for each of its pixels, sums over channels, and normalizations made of them,
// through the code generator and the virtual device: outputs must be those of the chip reference to the last bit.
#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

constexpr auto kInt8 = ir::DataType::kInt8;

void expect_exact(const ir::Model& model, unsigned seed) {
  for (const tiled::Level level : {tiled::Level::kBetter, tiled::Level::kAsGoogle}) {
    SCOPED_TRACE(level == tiled::Level::kBetter ? "-O1" : "-O0");
    const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const bool by_timing = level == tiled::Level::kAsGoogle;
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    if (by_timing) continue;
    const Status sound = passes_audit(*package), races = has_no_races(*package);
    EXPECT_TRUE(sound.ok()) << sound.message();
    EXPECT_TRUE(races.ok()) << races.message();
  }
}

ir::Shape with_last(ir::Shape shape, std::int32_t last) {
  std::vector<std::int32_t> sizes;
  for (int d = 0; d + 1 < shape.rank(); ++d) sizes.push_back(shape[d]);
  sizes.push_back(last);
  return ir::Shape(sizes);
}

std::string_view options_of(const std::string& op) {
  return op == "MUL"   ? "MulOptions"
         : op == "ADD" ? "AddOptions"
         : op == "SUB" ? "SubOptions"
                       : "SquaredDifferenceOptions";
}

// The numbers come from outside, or are sums over channels, which fill their words.
ir::Model combination(const std::string& op, const ir::Shape& shape, bool from_means, bool numbers_first) {
  QuantizedModel model(Quantized{kInt8, 0.05f, 7});
  const std::int32_t x = model.input(shape, "x");
  std::int32_t numbers = -1;
  if (from_means) {
    ir::Attributes keep;
    keep.set("keep_dims", true);
    numbers = model.op("MEAN", {x, model.ints({shape.rank() - 1})},
                       {model.computed(with_last(shape, 1), {kInt8, 0.021f, -9})}, "ReducerOptions", keep, 2);
  } else {
    numbers = model.input(with_last(shape, 1), "numbers");
    model.tensor(numbers).quantization.scale = {0.031f};
    model.tensor(numbers).quantization.zero_point = {-20};
  }
  ir::Attributes a;
  if (op != "SQUARED_DIFFERENCE") a.set("fused_activation_function", ir::EnumName{"NONE"});
  const Quantized to = op == "MUL"                  ? Quantized{kInt8, 0.11f, 3}
                       : op == "SQUARED_DIFFERENCE" ? Quantized{kInt8, 0.3f, -128}
                                                    : Quantized{kInt8, 0.07f, -4};
  const std::vector<std::int32_t> operands =
      numbers_first ? std::vector<std::int32_t>{numbers, x} : std::vector<std::int32_t>{x, numbers};
  return model.finish({model.op(op, operands, {model.computed(shape, to)}, options_of(op), a, 2)});
}

TEST(PixelNumbersDevice, CombinationsAreExact) {
  unsigned seed = 0;
  for (const ir::Shape& shape : {ir::Shape{1, 14, 14, 192},
                                 {1, 196, 64},
                                 {1, 7, 9, 20},
                                 {1, 5, 6, 130},
                                 {1, 3, 2, 7},
                                 {1, 1, 50, 68},
                                 {1, 30, 34, 4},
                                 {1, 128},
                                 {1, 1, 1, 300}}) {
    for (const char* op : {"ADD", "SUB", "MUL", "SQUARED_DIFFERENCE"}) {
      const bool from_means = seed % 2 == 0, numbers_first = seed / 2 % 2 == 1;
      SCOPED_TRACE(fmt::format("{} {} means {} first {}", op, shape.to_string(), from_means, numbers_first));
      expect_exact(combination(op, shape, from_means, numbers_first), ++seed);
    }
  }
}

// More lines than a round takes.
TEST(PixelNumbersDevice, LargeImagesTakeSeveralRounds) {
  for (const char* op : {"SUB", "MUL"}) {
    SCOPED_TRACE(op);
    expect_exact(combination(op, {1, 60, 100, 100}, true, false), 3);
  }
}

TEST(PixelNumbersDevice, SumsOverChannels) {
  unsigned seed = 0;
  for (const ir::Shape& shape : {ir::Shape{1, 6, 7, 5}, {1, 14, 14, 192}, {1, 3, 3, 1030}, {1, 50, 66}, {1, 900}}) {
    for (const char* op : {"MEAN", "SUM"}) {
      for (const bool keeps : {true, false}) {
        QuantizedModel model(Quantized{kInt8, 0.05f, -3});
        const std::int32_t x = model.input(shape);
        ir::Attributes a;
        a.set("keep_dims", keeps);
        std::vector<std::int32_t> sizes;
        for (int d = 0; d + 1 < shape.rank(); ++d) sizes.push_back(shape[d]);
        if (keeps) sizes.push_back(1);
        const Quantized to{kInt8, std::string_view(op) == "SUM" ? 0.6f : 0.01f, 11};
        const ir::Model made = model.finish({model.op(op, {x, model.ints({shape.rank() - 1})},
                                                      {model.computed(ir::Shape(sizes), to)}, "ReducerOptions", a, 2)});
        SCOPED_TRACE(fmt::format("{} {} keeps {}", op, shape.to_string(), keeps));
        expect_exact(made, ++seed);
        const auto distance = distance_from_tflite(made, seed);
        ASSERT_TRUE(distance.ok()) << distance.status().message();
        EXPECT_LE(*distance, 1);
      }
    }
  }
}

}  // namespace
}  // namespace reef::testing
