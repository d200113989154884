// SPDX-License-Identifier: Apache-2.0
// Images that become vectors and images of uneven sizes at -O0, where Google's ways are followed: on the virtual device
// against the chip reference, for shapes that its files do not have.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generated_code.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

Status runs(const ir::Model& model, unsigned seed) {
  const WholeModel whole(model);
  REEF_ASSIGN_OR_RETURN(const darwinn::Package package, compiler::generate_code(whole.part(seed + 1)));
  return runs_as_chip_reference(model, package, seed);
}

struct Shape {
  int height, width, channels;
};

// A convolution in front, so that the image is on the grid; then something that needs the vector.
ir::Model reshaped(const Shape& shape, int input_channels, int kind) {
  QuantizedModel model({kind % 2 == 0 ? ir::DataType::kInt8 : ir::DataType::kUInt8, 0.05f, kind % 2 == 0 ? -7 : 121});
  const std::int32_t x = model.input({1, shape.height, shape.width, input_channels});
  const std::int32_t image = model.conv(x, shape.channels, 3);
  const std::int32_t vector = model.reshape(image, {1, shape.height * shape.width * shape.channels});
  if (kind % 3 == 0) return model.finish({vector});
  return model.finish({kind % 3 == 1 ? model.fully_connected(vector, 5) : model.logistic(vector)});
}

TEST(CodegenReflow, ShapesThatAreKnownToMatter) {
  // One row; fewer rows than tiles; tiles that have nothing; padding between pixels, in one group of pixels and in
  // several; groups that are no whole words.
  const Shape shapes[] = {{1, 37, 8},  {2, 2, 4},  {3, 3, 1},   {3, 5, 12},  {5, 3, 4},   {16, 16, 1}, {8, 10, 2},
                          {10, 10, 1}, {7, 9, 20}, {64, 64, 1}, {13, 11, 3}, {30, 1, 16}, {9, 9, 64},  {4, 4, 6}};
  int kind = 0;
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels));
    const Status status = runs(reshaped(shape, 4, kind), static_cast<unsigned>(kind));
    EXPECT_TRUE(status.ok()) << status.message();
    ++kind;
  }
}

TEST(CodegenReflow, RandomShapes) {
  std::mt19937 random(5);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 40; ++i) {
    const Shape shape{up_to(24), up_to(24), up_to(3) == 1 ? up_to(9) : 4 * up_to(10)};
    SCOPED_TRACE(fmt::format("{}: {}x{}x{}", i, shape.height, shape.width, shape.channels));
    const Status status = runs(reshaped(shape, up_to(3), i), static_cast<unsigned>(i));
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Inputs of one to three channels, whose strides make halos of different sizes.
TEST(CodegenReflow, UnevenInputs) {
  std::mt19937 random(9);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  for (int i = 0; i < 40; ++i) {
    const int height = 3 + up_to(60), width = 3 + up_to(90), channels = up_to(3), kernel = 1 + 2 * (up_to(3) - 1);
    const int stride = up_to(2);
    SCOPED_TRACE(fmt::format("{}: {}x{}x{}, kernel {}, stride {}", i, height, width, channels, kernel, stride));
    QuantizedModel model({ir::DataType::kInt8, 0.05f, 3});
    const std::int32_t x = model.input({1, height, width, channels});
    const std::int32_t y = model.conv(x, 4 * up_to(4), kernel, stride);
    const Status status = runs(model.finish({y}), static_cast<unsigned>(i));
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace reef::testing
