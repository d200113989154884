// SPDX-License-Identifier: Apache-2.0
// MediaPipe's operators on landmarks, by what they mean: corners of the small picture are those of the box. (Values of
// the whole model that uses them were compared with MediaPipe's own runtime: tools/oracle/README.md.)
#include <cmath>

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include "execute/cpu/evaluate.h"
#include "ir/verify.h"

namespace reef::testing {
namespace {

std::int32_t add_tensor(ir::Model& model, const std::string& name, ir::Shape shape) {
  ir::Tensor tensor;
  tensor.name = name;
  tensor.type = ir::DataType::kFloat32;
  tensor.shape = std::move(shape);
  model.subgraphs[0].tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(model.subgraphs[0].tensors.size()) - 1;
}

std::vector<float> result_of(const std::string& op, Bytes options, const std::vector<ir::Shape>& shapes,
                             const std::vector<std::vector<float>>& values, ir::Shape result,
                             std::int32_t version = 2) {
  ir::Model model;
  model.buffers.resize(1);
  model.subgraphs.resize(1);
  ir::Operator made;
  made.type = op;
  made.builtin_code = ir::kCustomBuiltinCode;
  made.version = version;
  made.custom_options = std::move(options);
  for (std::size_t i = 0; i < shapes.size(); ++i) made.inputs.push_back(add_tensor(model, "in", shapes[i]));
  made.outputs = {add_tensor(model, "out", std::move(result))};
  model.subgraphs[0].inputs = made.inputs;
  model.subgraphs[0].outputs = made.outputs;
  model.subgraphs[0].operators.push_back(std::move(made));
  EXPECT_TRUE(ir::verify(model).ok());
  const auto prepared = cpu::prepared(std::make_shared<const ir::Model>(std::move(model)));
  if (!prepared.ok()) return {};
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const std::vector<float>& each : values) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(each.data());
    inputs.emplace_back(bytes, bytes + each.size() * sizeof(float));
  }
  const auto outputs = cpu::run_once(**prepared, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (!outputs.ok()) return {};
  std::vector<float> numbers((*outputs)[0].bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), (*outputs)[0].bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

Bytes matrix_options(std::vector<std::int64_t> subset, float scale = 1.5f) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("left_rotation_idx", 0);
    builder.Int("right_rotation_idx", 1);
    builder.Int("output_height", 16);
    builder.Int("output_width", 16);
    builder.Float("scale_x", scale);
    builder.Float("scale_y", scale);
    builder.Float("target_rotation_radians", 0);
    builder.TypedVector("subset_idxs", [&] {
      for (const std::int64_t i : subset) builder.Int(i);
    });
  });
  builder.Finish();
  return Bytes(builder.GetBuffer());
}

// Where (x, y) of the small picture lies.
std::vector<float> place(const std::vector<float>& matrix, float x, float y) {
  return result_of("TransformLandmarks", {}, {{1, 1, 2}, {1, 4, 4}}, {{x, y}, matrix}, {1, 1, 2});
}

TEST(LandmarkOps, CornersAreThoseOfTheBox) {
  const std::vector<float> landmarks = {10, 20, 7, 30, 20, 8, 10, 10, 0, 30, 40, 0, 500, 500, 0};
  const auto matrix =
      result_of("Landmarks2TransformMatrix", matrix_options({0, 1, 2, 3}), {{1, 5, 3}}, {landmarks}, {1, 4, 4});
  ASSERT_EQ(matrix.size(), 16u);
  const auto first = place(matrix, 0, 0), last = place(matrix, 16, 16);
  EXPECT_NEAR(first[0], 5, 1e-4);
  EXPECT_NEAR(first[1], 2.5, 1e-4);
  EXPECT_NEAR(last[0], 35, 1e-4);
  EXPECT_NEAR(last[1], 47.5, 1e-4);
}

TEST(LandmarkOps, ABoxIsTurnedWithItsLandmarks) {
  // The same face, turned by a right angle: (x, y) -> (-y, x).
  const std::vector<float> upright = {10, 20, 0, 30, 20, 0, 10, 10, 0, 30, 40, 0},
                           turned = {-20, 10, 0, -20, 30, 0, -10, 10, 0, -40, 30, 0};
  const auto a = result_of("Landmarks2TransformMatrix", matrix_options({2, 3, 0}), {{1, 4, 3}}, {upright}, {1, 4, 4});
  const auto b = result_of("Landmarks2TransformMatrix", matrix_options({2, 3, 0}), {{1, 4, 3}}, {turned}, {1, 4, 4});
  ASSERT_EQ(a.size(), 16u);
  ASSERT_EQ(b.size(), 16u);
  for (const auto& [x, y] : {std::pair(0.0f, 0.0f), std::pair(16.0f, 3.0f), std::pair(5.0f, 16.0f)}) {
    const auto p = place(a, x, y), q = place(b, x, y);
    EXPECT_NEAR(q[0], -p[1], 1e-3);
    EXPECT_NEAR(q[1], p[0], 1e-3);
  }
}

TEST(LandmarkOps, DepthStaysWhereLandmarksHaveOne) {
  const std::vector<float> matrix = {2, 0, 0, 1, 0, 3, 0, -1, 0, 0, 1, 0, 0, 0, 0, 1};
  EXPECT_EQ(result_of("TransformLandmarks", {}, {{1, 2, 3}, {1, 4, 4}}, {{1, 2, 9, 4, 5, 6}, matrix}, {1, 2, 3}),
            (std::vector<float>{3, 5, 9, 9, 14, 6}));
}

TEST(LandmarkOps, APictureIsCutOutAndZeroOutside) {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("output_height", 2);
    builder.Int("output_width", 2);
  });
  builder.Finish();
  const Bytes options(builder.GetBuffer());
  std::vector<float> picture(16);
  for (std::size_t i = 0; i < 16; ++i) picture[i] = static_cast<float>(i);
  const auto cut = [&](float x, float y, float scale) {
    const std::vector<float> matrix = {scale, 0, 0, x, 0, scale, 0, y, 0, 0, 1, 0, 0, 0, 0, 1};
    return result_of("TransformTensorBilinear", options, {{1, 4, 4, 1}, {1, 4, 4}}, {picture, matrix}, {1, 2, 2, 1});
  };
  EXPECT_EQ(cut(1, 2, 1), (std::vector<float>{9, 10, 13, 14}));
  EXPECT_EQ(cut(3, 0, 1), (std::vector<float>{3, 0, 7, 0})) << "the right column is outside";
  EXPECT_EQ(cut(0, 0, 2), (std::vector<float>{2.5, 4.5, 10.5, 12.5})) << "means of four pixels";
}

TEST(LandmarkOps, ForeignOptionsAreRefused) {
  const std::vector<float> landmarks(15, 1.0f);
  for (const auto& options : {matrix_options({0, 5}), matrix_options({-1}), matrix_options({}), matrix_options({0}, -1),
                              Bytes(std::vector<std::uint8_t>{1, 2, 3})}) {
    EXPECT_TRUE(result_of("Landmarks2TransformMatrix", options, {{1, 5, 3}}, {landmarks}, {1, 4, 4}).empty());
  }
  EXPECT_TRUE(
      result_of("Landmarks2TransformMatrix", matrix_options({0}), {{1, 5, 3}}, {landmarks}, {1, 4, 4}, 1).empty());
}

}  // namespace
}  // namespace reef::testing
