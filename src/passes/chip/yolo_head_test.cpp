// SPDX-License-Identifier: Apache-2.0
// Heads of YOLOv8 (as onnx2tf and Ultralytics write them) and YOLOv5, at sizes whose transpositions do not map.
#include "rewrite_models.h"

namespace reef::passes {
namespace {

using namespace chip_testing;

constexpr Affine8 kLogits = {DataType::kInt8, 0.11f, 12};
constexpr Affine8 kBoxes = {DataType::kInt8, 0.07f, -40};

std::int32_t slice(ModelBuilder& builder, std::int32_t x, int axis, std::int32_t begin, std::int32_t size) {
  return builder.ops().slice(x, axis, begin, size);
}

// A constant of random stored numbers.
std::int32_t random_constant(ModelBuilder& builder, ir::Shape shape, const Affine8& affine, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(shape.elements()));
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  return builder.ops().weights(shape, affine.type, values, {affine.scale}, affine.zero_point, 0);
}

// Expected value of each of 16 bins: softmax, then a 1x1 convolution with weights 0 to 15.
std::int32_t distribution(ModelBuilder& builder, std::int32_t box, std::int32_t n) {
  const std::vector<int> order = {0, 1, 3, 2};
  const std::int32_t bins = builder.ops().transpose(builder.ops().reshape(box, {1, 4, 16, n}), order);
  ir::Attributes beta;
  beta.set("beta", 1.0);
  const std::int32_t softmax =
      builder.add("SOFTMAX", "SoftmaxOptions", beta, {bins}, {1, 4, n, 16}, unit_affine(DataType::kInt8));
  std::vector<std::uint8_t> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(static_cast<std::uint8_t>(8 * i));
  const std::int32_t filter = builder.ops().weights({1, 1, 1, 16}, DataType::kInt8, weights, {1.0f / 8}, 0, 0);
  const std::int32_t bias = builder.ops().bias({0}, {1.0f / 2048});
  const std::int32_t expected = builder.ops().tensor({1, 4, n, 1}, kBoxes);
  return builder.ops().reshape(builder.ops().pointwise(softmax, filter, bias, "NONE", expected), {1, 4, n});
}

ir::Model yolo_v8_head(const std::vector<std::int32_t>& sizes, std::int32_t classes) {
  ModelBuilder builder;
  const std::int32_t channels = 64 + classes;
  const std::vector<int> to_nchw = {0, 3, 1, 2};
  std::vector<std::int32_t> parts;
  std::int32_t n = 0;
  for (const std::int32_t size : sizes) {
    const Affine8 own = {DataType::kInt8, 0.1f + 0.005f * static_cast<float>(size % 7), 5};
    const std::int32_t x = builder.input({1, size, size, channels}, own);
    const std::int32_t flat = builder.ops().reshape(builder.ops().transpose(x, to_nchw), {1, channels, size * size});
    parts.push_back(builder.ops().unary("QUANTIZE", flat, kLogits));
    n += size * size;
  }
  OpList& ops = builder.ops();
  const std::int32_t all = ops.concatenation(parts, 2);
  const std::int32_t distances = distribution(builder, slice(builder, all, 1, 0, 64), n);
  const std::int32_t anchors = random_constant(builder, {1, 2, n}, kBoxes, 4);
  const std::int32_t strides = random_constant(builder, {1, 1, n}, {DataType::kInt8, 0.2f, -128}, 5);
  const std::int32_t low = ops.binary("SUB", anchors, slice(builder, distances, 1, 0, 2), kBoxes);
  const std::int32_t high = ops.binary("ADD", anchors, slice(builder, distances, 1, 2, 2), kBoxes);
  const std::int32_t half = ops.filled({1}, {DataType::kInt8, 0.5f / 127, 0}, 127);
  const std::int32_t centre = ops.binary("MUL", ops.binary("ADD", low, high, kBoxes), half, kBoxes);
  const std::int32_t size = ops.binary("SUB", high, low, kBoxes);
  const std::vector<std::int32_t> box_parts = {centre, size};
  const Affine8 unit = unit_affine(DataType::kInt8);
  const std::int32_t box = ops.binary("MUL", ops.concatenation(box_parts, 1), strides, unit);
  const std::vector<std::int32_t> result = {box, ops.unary("LOGISTIC", slice(builder, all, 1, 64, classes), unit)};
  return builder.finish({ops.concatenation(result, 1)});
}

std::vector<std::string> misfits(const ir::Model& model) {
  std::vector<std::string> types;
  for (std::size_t i = 0; i < model.subgraphs[0].operators.size(); ++i) {
    if (!fits_the_chip(model, static_cast<std::int32_t>(i))) types.push_back(model.subgraphs[0].operators[i].type);
  }
  return types;
}

// Operators that read, directly or not, what one that does not fit computes.
std::size_t stranded(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  std::vector<bool> is_late(graph.tensors.size(), false);
  std::size_t count = 0;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const ir::Operator& op = graph.operators[i];
    bool late = !fits_the_chip(model, static_cast<std::int32_t>(i));
    for (const std::int32_t input : op.inputs) late = late || is_late[at(input)];
    for (const std::int32_t output : op.outputs) is_late[at(output)] = late;
    count += late ? 1 : 0;
  }
  return count;
}

TEST(YoloHead, Version8KeepsOnlyItsLastTransposition) {
  const ir::Model model = yolo_v8_head({32, 16, 8}, 80);
  EXPECT_GE(misfits(model).size(), 2u);
  EXPECT_GT(stranded(model), 20u);
  RewriteOptions options = standard_options();
  const Rewritten result = rewritten(model, options);
  EXPECT_EQ(difference(model, result.model, 3), 0);
  EXPECT_LE(stranded(result.model), 2u);
  for (const Application& each : result.applications) EXPECT_EQ(each.largest_difference, 0) << each.what;
  EXPECT_LE(count_ops(result.model, "TRANSPOSE"), 4u) << "one of the boxes, and the scores in pieces";
  EXPECT_EQ(rewritten(model, options).model, result.model);
}

TEST(YoloHead, WhatFitsIsLeft) {
  const ir::Model model = yolo_v8_head({20, 10, 5}, 80);
  ASSERT_EQ(misfits(model).size(), 0u);
  EXPECT_EQ(rewritten(model, standard_options()).model, model);
}

TEST(YoloHead, Version5) {
  ModelBuilder builder;
  OpList& ops = builder.ops();
  const std::int32_t n = 40 * 40, outputs = 85;
  const std::int32_t x = builder.input({1, 40, 40, 3 * outputs}, kLogits);
  const std::vector<int> order = {0, 2, 1, 3};
  const std::int32_t y = ops.transpose(ops.reshape(x, {1, n, 3, outputs}), order);
  const std::int32_t sigmoid = ops.unary("LOGISTIC", y, unit_affine(DataType::kInt8));
  const std::int32_t grid = random_constant(builder, {1, 1, n, 2}, unit_affine(DataType::kInt8), 8);
  const std::int32_t sizes = random_constant(builder, {1, 3, 1, 2}, unit_affine(DataType::kInt8), 9);
  const Affine8 unit = unit_affine(DataType::kInt8);
  const std::vector<std::int32_t> parts = {ops.binary("ADD", slice(builder, sigmoid, 3, 0, 2), grid, unit),
                                           ops.binary("MUL", slice(builder, sigmoid, 3, 2, 2), sizes, unit),
                                           slice(builder, sigmoid, 3, 4, outputs - 4)};
  const ir::Model model = builder.finish({ops.reshape(ops.concatenation(parts, 3), {1, 3 * n, outputs})});
  const Rewritten result = rewritten(model, standard_options());
  EXPECT_EQ(difference(model, result.model, 3), 0);
  EXPECT_LE(stranded(result.model), 2u);
}

}  // namespace
}  // namespace reef::passes
