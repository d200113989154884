// SPDX-License-Identifier: Apache-2.0
#include "ops/chip_work.h"

#include <gtest/gtest.h>

#include "ops/static_ops.h"
#include "published_networks.h"

namespace reef::ops {
namespace {

using reef::testing::NetworkBuilder;

// The last operator's work.
ChipWork work_of(NetworkBuilder& builder, std::int32_t output) {
  const ir::Model model = builder.finish(output);
  const StaticOps ops(model);
  EXPECT_NE(ops.definition(ops.count() - 1), nullptr);
  return chip_work(ops.context(ops.count() - 1));
}

// Steps and bytes below are those of compiled files of these shapes.
TEST(ChipWork, ConvolutionTakesAStepForFourInputsOf64Outputs) {
  NetworkBuilder b(128, 128, 32);
  const ChipWork work = work_of(b, b.conv(b.input(), 32, 7));
  EXPECT_NEAR(work.tensor_cycles, 32 * 32 * 49 * 8, 32 * 32 * 4);
  EXPECT_EQ(work.parameter_bytes, (49 * 8 + 1) * 32 * 4);
  EXPECT_EQ(work.parameter_lines, 49 * 8 + 1);
  EXPECT_EQ(work.scratch_lines, 2 * 49 * 8);
  EXPECT_GT(work.move_cycles, static_cast<double>(work.parameter_bytes) / 16);
}

TEST(ChipWork, ConvolutionOfFewInputsIsHeldBackByItsOutputs) {
  NetworkBuilder b(112, 112, 16);
  EXPECT_EQ(work_of(b, b.conv(b.input(), 96)).tensor_cycles, 28 * 28 * 2 * 16);
}

TEST(ChipWork, DepthwiseTakesAStepForFourChannels) {
  NetworkBuilder b(112, 112, 32);
  const ChipWork work = work_of(b, b.depthwise(b.input(), 3, 1));
  EXPECT_EQ(work.tensor_cycles, 28 * 28 * 9 * 8);
  EXPECT_EQ(work.parameter_bytes, 8 * 160);
  EXPECT_EQ(work.parameter_lines, 5);
}

TEST(ChipWork, DepthwiseOfManyChannelsAndFewPixelsWaitsForItsWeights) {
  NetworkBuilder b(7, 7, 960);
  const ChipWork work = work_of(b, b.depthwise(b.input(), 3, 1));
  EXPECT_EQ(work.tensor_cycles, 4 * 9 * 240);
  EXPECT_NEAR(work.tensor_cycles + work.move_cycles, 12879, 600);
}

TEST(ChipWork, FullyConnectedIsSharedOutTo64OutputsATile) {
  NetworkBuilder b(1, 1, 1024);
  const ChipWork work = work_of(b, b.fully_connected(b.input(), 1024));
  EXPECT_EQ(work.tensor_cycles, 256);
  EXPECT_TRUE(work.stays_in_tiles);
  EXPECT_EQ(work.group_lines, 257);
  EXPECT_EQ(work.parameter_lines, 16 * 257);
}

TEST(ChipWork, ConvolutionOfAVectorIsAFullyConnectedLayer) {
  NetworkBuilder b(1, 1, 1280);
  const ChipWork work = work_of(b, b.conv(b.input(), 1001));
  EXPECT_EQ(work.tensor_cycles, 320);
  EXPECT_TRUE(work.stays_in_tiles);
}

TEST(ChipWork, AdditionTakesFourStepsForFourResults) {
  NetworkBuilder b(56, 56, 24);
  const std::int32_t other = b.conv(b.input(), 24);
  EXPECT_EQ(work_of(b, b.add(b.input(), other)).tensor_cycles, 14 * 14 * 6 * 4);
}

TEST(ChipWork, ConstantsPerChannelAreSentEveryTime) {
  NetworkBuilder b(20, 11, 32);
  const ChipWork work = work_of(b, b.scale_and_shift(b.input()));
  EXPECT_EQ(work.always_streamed_bytes, 8 * 64);
  EXPECT_EQ(work.parameter_bytes, 0);
  EXPECT_EQ(work.tensor_cycles, 5 * 3 * 8);
}

TEST(ChipWork, SoftmaxStoresConstantsUnlessClassesFillWords) {
  NetworkBuilder odd(1, 1, 1001), even(1, 1, 1000);
  EXPECT_EQ(work_of(odd, odd.softmax(odd.input())).parameter_bytes, 48256);
  EXPECT_EQ(work_of(even, even.softmax(even.input())).parameter_bytes, 0);
}

TEST(ChipWork, LargeMapsAreComputedInParts) {
  NetworkBuilder small(112, 112, 32), large(512, 512, 64);
  EXPECT_EQ(work_of(small, small.depthwise(small.input(), 3, 1)).passes, 1);
  const ChipWork work = work_of(large, large.depthwise(large.input(), 3, 1));
  EXPECT_EQ(work.passes, 11);
  EXPECT_GT(work.instruction_bytes, 10 * 107 * 16);
}

TEST(ChipWork, ShapesThatAreNotKnownOrAbsurdAreNoWork) {
  for (const ir::Shape& shape : {ir::Shape{-1, 8, 8, 4}, ir::Shape{0, 8, 8, 4}, ir::Shape{1, 1 << 20, 1 << 20, 4}}) {
    NetworkBuilder b(8, 8, 4);
    ir::Model model = b.finish(b.conv(b.input(), 4));
    for (const std::int32_t tensor : {0, model.subgraphs[0].outputs[0]}) {
      model.subgraphs[0].tensors[at(tensor)].shape = shape;
    }
    const ChipWork work = chip_work(StaticOps(model).context(0));
    EXPECT_EQ(work.tensor_cycles + work.move_cycles, 0) << shape.to_string();
  }
}

TEST(ChipWork, AbsurdAttributesDoNoHarm) {
  NetworkBuilder b(8, 8, 4);
  ir::Model model = b.finish(b.pool("MAX_POOL_2D", b.input(), 2, 2));
  model.subgraphs[0].operators[0].attributes.set("filter_width", std::int64_t{INT64_MAX});
  model.subgraphs[0].operators[0].attributes.set("filter_height", std::int64_t{INT64_MIN});
  const ChipWork work = chip_work(StaticOps(model).context(0));
  EXPECT_GT(work.tensor_cycles, 0);
  EXPECT_LT(work.tensor_cycles, 1e6);
}

}  // namespace
}  // namespace reef::ops
