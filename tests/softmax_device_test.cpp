// SPDX-License-Identifier: Apache-2.0
// SOFTMAX through the code generator and the virtual device.
#include <random>

#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"
#include "trials.h"

namespace reef::testing {
namespace {

// A row of `elements` numbers, made by a layer so that they vary with the input.
ir::Model row_model(unsigned seed, int elements) {
  std::mt19937 random(seed);
  const auto among = [&](std::initializer_list<float> values) { return *(values.begin() + random() % values.size()); };
  const ir::DataType type = random() % 3 == 0 ? ir::DataType::kUInt8 : ir::DataType::kInt8;
  const std::int64_t lowest = type == ir::DataType::kInt8 ? -128 : 0;
  const std::int64_t zero = lowest + std::vector<int>{0, 3, 100, 128, 255}[random() % 5];
  QuantizedModel model(Quantized{type, among({0.001f, 0.02f, 0.1f, 0.3f}), zero});
  const bool is_vector = random() % 3 != 0;
  const std::int32_t x = model.input(is_vector ? ir::Shape{1, 12} : ir::Shape{1, 1, 1, 8});
  const std::int32_t logits = is_vector ? model.fully_connected(x, elements) : model.conv(x, elements);
  model.tensor(logits).quantization.scale[0] = among({0.0005f, 0.004f, 0.02f, 0.05f, 0.1f, 0.5f});
  const std::int32_t out = model.computed(model.shape(logits), Quantized{type, 1.0f / 256, lowest});
  ir::Attributes a;
  a.set("beta", double{random() % 4 == 0 ? 0.7f : 1.0f});
  return model.finish({model.op("SOFTMAX", {logits}, {out}, "SoftmaxOptions", a, 2)});
}

// Rows that are the pixels of an image.
ir::Model image_model(unsigned seed) {
  std::mt19937 random(seed);
  const auto among = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  QuantizedModel model(Quantized{ir::DataType::kInt8, 0.05f, among({-128, -5, 100})});
  const int height = 1 + static_cast<int>(random() % 12), width = 1 + static_cast<int>(random() % 20);
  const std::int32_t x = model.input({1, height, width, 4});
  std::int32_t logits = model.conv(x, among({1, 2, 3, 4, 5, 7, 16, 21, 33, 130, 257}), among({1, 1, 3}));
  model.tensor(logits).quantization.scale[0] = random() % 2 == 0 ? 0.02f : 0.2f;
  const std::int32_t out = model.computed(model.shape(logits), Quantized{ir::DataType::kInt8, 1.0f / 256, -128});
  ir::Attributes a;
  a.set("beta", 1.0);
  const std::int32_t rows = model.op("SOFTMAX", {logits}, {out}, "SoftmaxOptions", a, 2);
  if (random() % 3 != 0) return model.finish({rows});
  return model.finish({model.conv(rows, 8, 3), logits});  // a halo, and logits that are needed themselves
}

TEST(SoftmaxDevice, PixelsAreBitExact) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ir::Model model = image_model(seed);
    const auto level = seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter;
    const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const device::Schedule schedule = schedule_of(seed);
    const Status status = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    if (seed % 5 == 0) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message();
    }
    if (seed % 5 == 1) {
      const Status sound = passes_audit(*package);
      EXPECT_TRUE(sound.ok()) << sound.message();
    }
  }
}

TEST(SoftmaxDevice, RowsAreBitExact) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed + 1000);
    const int elements = seed < 70 ? static_cast<int>(seed) + 1 : 1 + static_cast<int>(random() % 1500);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", elements " + std::to_string(elements));
    const ir::Model model = row_model(seed, elements);
    const WholeModel whole(model);
    const auto level = seed % 2 == 0 ? tiled::Level::kAsGoogle : tiled::Level::kBetter;
    const auto package = compiler::generate_code_with(whole.part(1 + seed), {.level = level});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const device::Schedule schedule{
        .seed = seed % 3, .reluctant = level == tiled::Level::kBetter && seed % 5 == 4 ? 1u << (seed / 5 % 10) : 0};
    const Status status = runs_as_chip_reference(model, *package, seed, &schedule);
    EXPECT_TRUE(status.ok()) << status.message();
    if (seed % 4 == 3) {
      const Status races = has_no_races(*package);
      EXPECT_TRUE(races.ok()) << races.message();
    }
    if (seed % 4 == 1) {
      const Status sound = passes_audit(*package);
      EXPECT_TRUE(sound.ok()) << sound.message();
    }
  }
}

}  // namespace
}  // namespace reef::testing
