// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR by any factor that maps, from the model to the virtual device: bit-exact with the chip reference at
// both levels, sound, in several orders of execution; and how far its numbers are from TFLite's.
#include <numeric>

#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"

namespace reef::testing {
namespace {

enum class Grid { kCorners, kAligned, kHalfPixels };
constexpr Grid kGrids[] = {Grid::kCorners, Grid::kAligned, Grid::kHalfPixels};

struct Case {
  int height = 1, width = 1, channels = 1, to_height = 1, to_width = 1;
  Grid grid = Grid::kCorners;
  ir::DataType type = ir::DataType::kInt8;
  int zero_point = 3;
  bool between_layers = false;

  std::string to_string() const {
    constexpr const char* kNames[] = {"", " align_corners", " half_pixel_centers"};
    return fmt::format("{}x{}x{} to {}x{}{}{}{} zero {}", height, width, channels, to_height, to_width,
                       kNames[static_cast<int>(grid)], between_layers ? " between layers" : "",
                       type == ir::DataType::kInt8 ? " int8" : " uint8", zero_point);
  }
};

ir::Model model_of(const Case& c) {
  QuantizedModel model(Quantized{c.type, 0.05f, c.zero_point});
  std::int32_t x = model.input({1, c.height, c.width, c.channels});
  if (c.between_layers) x = model.conv(x, c.channels, 1);
  const std::int32_t y = model.resize("RESIZE_BILINEAR", x, c.to_height, c.to_width, c.grid == Grid::kAligned,
                                      c.grid == Grid::kHalfPixels);
  if (!c.between_layers) return model.finish({y});
  return model.finish({model.conv(y, 6, 3), model.conv(x, 4, 3)});
}

// Of all positions along an axis.
int denominator(int from, int to, Grid grid) {
  const bool half = grid == Grid::kHalfPixels;
  const int trim = grid == Grid::kAligned && to > 1 ? 1 : 0, in = from - trim, out = to - trim;
  if (from == 1) return 1;
  int common = half ? 2 * out : out;
  const int unit = common;
  for (int i = 0; i < to; ++i) common = std::gcd(common, half ? (2 * i + 1) * in - out : i * in);
  return unit / common;
}
int denominator(const Case& c) {
  return denominator(c.height, c.to_height, c.grid) * denominator(c.width, c.to_width, c.grid);
}

// One that maps.
Case random_case(unsigned seed) {
  RandomChoice choice(seed);
  for (;;) {
    Case c;
    c.grid = kGrids[choice.between(0, 2)];
    c.type = choice.likely(50) ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    c.zero_point = choice.zero_point(c.type);
    c.between_layers = choice.likely(40);
    c.channels = choice.likely(80) ? choice.between(1, 20) : choice.between(21, 130);
    c.height = choice.between(1, 20);
    c.width = choice.between(1, 20);
    const auto target = [&](int size) {
      const int way = choice.between(0, 3);
      if (way == 0) return size * choice.between(1, 8);
      if (way == 1 && size > 1) return (size - 1) * choice.between(1, 8) + 1;
      return way == 2 ? size : choice.between(1, 40);
    };
    c.to_height = target(c.height);
    c.to_width = target(c.width);
    if (denominator(c) <= 128 && c.to_height * c.to_width * c.channels <= 30000) return c;
  }
}

void expect_exact(const Case& c, unsigned seed) {
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.to_string()));
  const ir::Model model = model_of(c);
  for (const auto level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
    const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const device::Schedule schedule{.seed = seed % 3};
    const Status runs = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(runs.ok()) << runs.message();
    if (level == tiled::Level::kBetter) {
      const Status sound = passes_audit(*package);
      EXPECT_TRUE(sound.ok()) << sound.message();
    }
    if (seed % 4 == 1) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message();
    }
  }
}

TEST(CodegenBilinear, AnySizeIsBitExact) {
  for (unsigned seed = 0; seed < 60; ++seed) expect_exact(random_case(seed), seed);
}

TEST(CodegenBilinear, SizesOfNetworks) {
  // DeepLab, super-resolution, feature pyramids; and images too small for the chip's instruction.
  for (const Case& c : std::vector<Case>{
           {.height = 9, .width = 9, .channels = 21, .to_height = 33, .to_width = 33, .grid = Grid::kAligned},
           {.height = 17,
           .width = 17,
           .channels = 8,
           .to_height = 65,
           .to_width = 65,
           .grid = Grid::kAligned,
           .between_layers = true},
           {.height = 16, .width = 16, .channels = 3, .to_height = 64, .to_width = 64, .grid = Grid::kHalfPixels},
           {.height = 12, .width = 10, .channels = 16, .to_height = 36, .to_width = 30},
           {.height = 4, .width = 4, .channels = 5, .to_height = 32, .to_width = 32},
           {.height = 2,
           .width = 4,
           .channels = 7,
           .to_height = 4,
           .to_width = 8,
           .grid = Grid::kHalfPixels,
           .between_layers = true},
           {.height = 1, .width = 10, .channels = 9, .to_height = 2, .to_width = 20},
           {.height = 2, .width = 1, .channels = 4, .to_height = 129, .to_width = 5, .grid = Grid::kAligned},
           {.height = 1, .width = 1, .channels = 6, .to_height = 5, .to_width = 9},
           {.height = 20, .width = 30, .channels = 6, .to_height = 5, .to_width = 10}}) {
    expect_exact(c, 1);
  }
}

// TFLite's kernel for uint8 has positions in float32, which are exact up to a rounding.
TEST(CodegenBilinear, IsWithinOneOfTflite) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case c = random_case(seed);
    c.between_layers = false;
    c.type = ir::DataType::kUInt8;
    c.zero_point = 7;
    SCOPED_TRACE(c.to_string());
    const auto distance = distance_from_tflite(model_of(c), seed);
    ASSERT_TRUE(distance.ok()) << distance.status().message();
    EXPECT_LE(*distance, 1);
  }
}

// That for int8 has the distance of pixels in units of 1/1024 and adds it up, so that positions drift where it is not a
// whole number of these: then more than one is possible, as much as the drift makes of a difference of 255.
TEST(CodegenBilinear, IsAsFarFromTfliteForInt8AsPositionsAre) {
  int largest = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case c = random_case(seed);
    c.between_layers = false;
    c.type = ir::DataType::kInt8;
    SCOPED_TRACE(c.to_string());
    const auto drift = [&](int from, int to) {
      const int trim = c.grid == Grid::kAligned && to > 1 ? 1 : 0, in = from - trim, out = to - trim;
      const int rounded = (1024 * in + out / 2) / out;
      const double of_a_step = std::abs(rounded - 1024.0 * in / out);
      const bool half_step_is_cut = c.grid == Grid::kHalfPixels && rounded % 2 == 1;
      return from == 1 ? 0 : ((to - 1) * of_a_step + (half_step_is_cut ? 0.5 + of_a_step : of_a_step)) / 1024;
    };
    const double drift_y = drift(c.height, c.to_height), drift_x = drift(c.width, c.to_width);
    const auto distance = distance_from_tflite(model_of(c), seed);
    ASSERT_TRUE(distance.ok()) << distance.status().message();
    EXPECT_LE(*distance, 1 + 255 * (drift_y + drift_x));
    largest = std::max(largest, *distance);
  }
  std::printf("at most %d from TFLite's int8 kernel\n", largest);
}

TEST(CodegenBilinear, RefusesWeightsThatAreNotOf8Bits) {
  const Case c{.height = 33, .width = 33, .channels = 2, .to_height = 513, .to_width = 513, .grid = Grid::kAligned};
  const ir::Model model = model_of(c);
  const auto package = compiler::generate_code_with(WholeModel(model).part(1), {});
  ASSERT_FALSE(package.ok());
  EXPECT_EQ(package.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(package.status().message().find("multiples of 1/256"), std::string::npos) << package.status().message();
}

}  // namespace
}  // namespace reef::testing
