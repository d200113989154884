// SPDX-License-Identifier: Apache-2.0
// Convolutions that compute several neighbouring pixels at a time (lower/pixel_patches.h), in sizes that divide into
// patches and sizes that do not: bit-exact with the chip reference in several orders of execution, sound and without
// races.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

struct Layer {
  int height = 0, width = 0, channels = 0;
  int outputs = 0;  // 0: depthwise
  int kernel = 3, stride = 1;

  ir::Model model() const {
    QuantizedModel model;
    std::int32_t x = model.input({1, height, width, channels});
    x = outputs == 0 ? model.depthwise(x, kernel, stride) : model.conv(x, outputs, kernel, stride);
    // A reader that needs halos of what was computed in patches.
    const std::int32_t y = model.conv(x, 8, 3);
    return model.finish({y, x});
  }
  std::string to_string() const {
    return fmt::format("{}x{}x{}, {} outputs, kernel {}, stride {}", height, width, channels, outputs, kernel, stride);
  }
};

// Pixels at a time of the model's first layer.
int pixels_at_a_time(const tiled::TiledProgram& program) {
  for (const tiled::Step& step : program.steps) {
    const auto* layer = std::get_if<tiled::Convolution>(&step.work);
    if (layer != nullptr && step.op == 0) return layer->patch_rows * layer->patch_columns;
  }
  return 0;
}

// Returns the number of pixels at a time.
int expect_exact(const Layer& layer, unsigned seed) {
  SCOPED_TRACE(layer.to_string());
  const ir::Model model = layer.model();
  const auto code = compiler::generate_part_with(WholeModel(model).part(1 + seed), {.level = tiled::Level::kFast});
  EXPECT_TRUE(code.ok()) << code.status().message();
  if (!code.ok()) return 0;
  for (const unsigned order : {0u, 7u, 23u}) {
    const device::Schedule schedule = schedule_of(seed + order);
    const Status runs = runs_as_chip_reference(model, code->package, seed, &schedule);
    EXPECT_TRUE(runs.ok()) << runs.message();
  }
  EXPECT_TRUE(passes_audit(code->package).ok()) << passes_audit(code->package).message();
  EXPECT_TRUE(has_no_races(code->package).ok()) << has_no_races(code->package).message();
  return pixels_at_a_time(code->program);
}

TEST(PixelPatches, DepthwiseInEvenSizes) {
  EXPECT_EQ(expect_exact({.height = 112, .width = 112, .channels = 8}, 1), 16);
  EXPECT_GT(expect_exact({.height = 56, .width = 56, .channels = 20}, 2), 1);
  EXPECT_GT(expect_exact({.height = 64, .width = 48, .channels = 8, .kernel = 5}, 3), 1);
  EXPECT_GT(expect_exact({.height = 176, .width = 176, .channels = 8, .stride = 2}, 4), 1);
}

TEST(PixelPatches, DepthwiseInUnevenSizes) {
  unsigned seed = 0;
  int in_patches = 0;
  for (const auto& [height, width] : {std::pair{89, 61}, {65, 97}, {91, 81}, {45, 33}, {127, 31}}) {
    for (const int stride : {1, 2}) {
      in_patches += expect_exact({.height = height, .width = width, .channels = 6, .stride = stride}, ++seed) > 1;
    }
  }
  EXPECT_GE(in_patches, 5);
}

TEST(PixelPatches, ThinConvolutions) {
  EXPECT_GT(expect_exact({.height = 80, .width = 80, .channels = 16, .outputs = 16}, 1), 1);
  EXPECT_GT(expect_exact({.height = 61, .width = 93, .channels = 3, .outputs = 3, .kernel = 5}, 2), 1);
  EXPECT_GT(expect_exact({.height = 75, .width = 75, .channels = 5, .outputs = 10}, 3), 1);
}

// Weights of patches would take longer to arrive than they save.
TEST(PixelPatches, FewPixelsAreComputedOneByOne) {
  EXPECT_EQ(expect_exact({.height = 8, .width = 8, .channels = 64}, 1), 1);
  // Nothing is shared between windows of one pixel.
  EXPECT_EQ(expect_exact({.height = 64, .width = 64, .channels = 16, .outputs = 16, .kernel = 1}, 2), 1);
}

TEST(PixelPatches, OnlyAtTheHighestLevel) {
  const ir::Model model = Layer{.height = 112, .width = 112, .channels = 8}.model();
  for (const tiled::Level level : {tiled::Level::kAsGoogle, tiled::Level::kBetter}) {
    const auto code = compiler::generate_part_with(WholeModel(model).part(1), {.level = level});
    ASSERT_TRUE(code.ok()) << code.status().message();
    EXPECT_EQ(pixels_at_a_time(code->program), 1);
  }
}

}  // namespace
}  // namespace reef::testing
