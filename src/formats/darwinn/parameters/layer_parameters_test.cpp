// SPDX-License-Identifier: Apache-2.0
// Chunks worked out by hand from the rules, for every case of padding; then properties over random layers.
#include "formats/darwinn/parameters/layer_parameters.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

namespace reef::darwinn {
namespace {

using ByteVector = std::vector<std::uint8_t>;

// ---- Writing expected chunks down ----

ByteVector operator+(ByteVector a, const ByteVector& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
ByteVector repeat(std::size_t count, const ByteVector& what) {
  ByteVector all;
  for (std::size_t i = 0; i < count; ++i) all = all + what;
  return all;
}
ByteVector zeros(std::size_t count) { return ByteVector(count, 0); }
ByteVector word(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8),
          static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 24)};
}
ByteVector words(std::size_t count, std::uint32_t value) { return repeat(count, word(value)); }
ByteVector number(float value) { return word(std::bit_cast<std::uint32_t>(value)); }

constexpr std::uint8_t kZero = 7;  // the weight zero point of most cases
const ByteVector kPad = {kZero, kZero, kZero, kZero};

LayerShape convolution(std::int32_t outputs, std::int32_t inputs, std::int32_t height = 1, std::int32_t width = 1) {
  return {LayerKind::kConvolution, height, width, inputs, outputs};
}
LayerShape fully_connected(std::int32_t outputs, std::int32_t inputs) {
  return {LayerKind::kFullyConnected, 1, 1, inputs, outputs};
}
LayerShape depthwise(std::int32_t channels, std::int32_t height, std::int32_t width) {
  return {LayerKind::kDepthwise, height, width, channels, channels};
}

LayerParameters layer(const LayerShape& shape, ByteVector weights, std::optional<std::uint8_t> zero_point = kZero) {
  LayerParameters result;
  result.shape = shape;
  result.weights = std::move(weights);
  result.weight_zero_point = zero_point;
  return result;
}

void expect_equal(const LayerParameters& a, const LayerParameters& b) {
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.biases, b.biases);
  EXPECT_EQ(a.has_zero_points, b.has_zero_points);
  ASSERT_EQ(a.multipliers.size(), b.multipliers.size());
  for (std::size_t i = 0; i < a.multipliers.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(a.multipliers[i]), std::bit_cast<std::uint32_t>(b.multipliers[i]));
  }
}

// Packs to `expected`, and unpacks from it to the same layer.
void expect_chunk(const LayerParameters& layer, const ByteVector& expected) {
  const auto size = packed_size(layer.shape, layer.presence());
  ASSERT_TRUE(size.ok()) << size.status().message();
  EXPECT_EQ(*size, expected.size());
  const auto chunk = pack(layer);
  ASSERT_TRUE(chunk.ok()) << chunk.status().message();
  EXPECT_EQ(*chunk, expected);
  const auto back = unpack(expected, layer.shape, layer.presence(), layer.order);
  ASSERT_TRUE(back.ok()) << back.status().message();
  expect_equal(*back, layer);
  if (back->weight_zero_point) {
    EXPECT_EQ(back->weight_zero_point, layer.weight_zero_point);
  }
}

// ---- By hand ----

TEST(LayerParameters, OneByOneConvolutionOfOneChannel) {
  expect_chunk(layer(convolution(1, 1), {200}), ByteVector{200, 7, 7, 7} + repeat(3, kPad) + zeros(48));
}

TEST(LayerParameters, TwoOutputsThreeInputsWithBias) {
  LayerParameters l = layer(convolution(2, 3), {1, 2, 3, 4, 5, 6});
  l.biases = {-1, 258};
  expect_chunk(l, ByteVector{255, 255, 255, 255, 2, 1, 0, 0} + zeros(8) + ByteVector{1, 2, 3, 7, 4, 5, 6, 7} +
                      repeat(2, kPad) + zeros(32));
}

TEST(LayerParameters, ThreeOutputsFourInputs) {
  expect_chunk(layer(convolution(3, 4), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
               ByteVector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} + kPad + zeros(48));
}

TEST(LayerParameters, FourOutputsFiveInputs) {
  const ByteVector weights = {1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 21, 22, 23, 24, 25, 31, 32, 33, 34, 35};
  expect_chunk(layer(convolution(4, 5), weights),
               ByteVector{1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34} +
                   ByteVector{5, 7, 7, 7, 15, 7, 7, 7, 25, 7, 7, 7, 35, 7, 7, 7} + zeros(32));
}

TEST(LayerParameters, FiveOutputsWithAllArrays) {
  LayerParameters l = layer(convolution(5, 1), {1, 2, 3, 4, 5}, 128);
  l.multipliers = {0.5f, 0.25f, 2.0f, 4.0f, 8.0f};
  l.biases = {1, 2, 3, 4, 5};
  l.has_zero_points = true;
  const ByteVector multipliers =
      number(0.5f) + number(0.25f) + number(2.0f) + number(4.0f) + number(8.0f) + repeat(3, number(0.5f)) + zeros(32);
  const ByteVector biases = word(1) + word(2) + word(3) + word(4) + word(5) + zeros(44);
  const ByteVector zero_points = words(8, 128) + zeros(32);
  ByteVector weights;
  for (std::uint8_t w = 1; w <= 5; ++w) weights = weights + ByteVector{w, 128, 128, 128};
  weights = weights + ByteVector(12, 128) + zeros(32);
  expect_chunk(l, multipliers + biases + zero_points + weights);
}

TEST(LayerParameters, FullyConnectedOfFewOutputsHasSixteenCells) {
  expect_chunk(layer(fully_connected(1, 4), {1, 2, 3, 4}), ByteVector{1, 2, 3, 4} + repeat(3, kPad) + zeros(48));
  expect_chunk(layer(fully_connected(4, 4), ByteVector(16, 9)), ByteVector(16, 9) + zeros(48));
}

TEST(LayerParameters, GivenCellsWinOverTheRule) {
  LayerShape shape = convolution(2, 4);
  shape.cells = 64;
  expect_chunk(layer(shape, {1, 2, 3, 4, 5, 6, 7, 8}),
               ByteVector{1, 2, 3, 4, 5, 6, 7, 8} + repeat(2, kPad) + zeros(240));
}

TEST(LayerParameters, SixteenOutputsHaveNoPaddingAndNoZeroPoint) {
  LayerParameters l = layer(convolution(16, 4), ByteVector(64, 33), std::nullopt);
  expect_chunk(l, ByteVector(64, 33));
  const auto back = unpack(ByteVector(64, 33), l.shape, {}, {});
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE(back->weight_zero_point.has_value());
  const auto told = unpack(ByteVector(64, 33), l.shape, {}, {}, 5);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->weight_zero_point, 5);
}

TEST(LayerParameters, SeventeenOutputs) {
  expect_chunk(layer(convolution(17, 4), ByteVector(68, 33)), ByteVector(68, 33) + repeat(3, kPad) + zeros(48));
}

TEST(LayerParameters, SixtyThreeOutputs) {
  expect_chunk(layer(convolution(63, 4), ByteVector(252, 33)), ByteVector(252, 33) + kPad);
}

TEST(LayerParameters, SixtyFourOutputs) {
  LayerParameters l = layer(convolution(64, 4), ByteVector(256, 33), std::nullopt);
  l.biases.assign(64, -2);
  expect_chunk(l, words(64, 0xfffffffeu) + ByteVector(256, 33));
}

TEST(LayerParameters, SixtyFiveOutputsStartASecondGroup) {
  LayerParameters l = layer(convolution(65, 4), ByteVector(256, 33) + ByteVector{1, 2, 3, 4});
  l.multipliers.assign(65, 0.5f);
  l.multipliers[0] = 0.125f;
  l.multipliers[64] = 4.0f;
  l.has_zero_points = true;
  const ByteVector first = number(0.125f) + repeat(63, number(0.5f)) + words(64, kZero) + ByteVector(256, 33);
  const ByteVector second = number(4.0f) + repeat(3, number(0.125f)) + repeat(60, number(1.0f)) + words(4, kZero) +
                            zeros(240) + ByteVector{1, 2, 3, 4} + repeat(3, kPad) + zeros(240);
  expect_chunk(l, first + second);
}

TEST(LayerParameters, NinetySixOutputs) {
  LayerParameters l = layer(convolution(96, 4), ByteVector(256, 33) + ByteVector(128, 44), std::nullopt);
  l.multipliers.assign(96, 0.5f);
  l.biases.assign(96, 3);
  expect_chunk(l, repeat(64, number(0.5f)) + words(64, 3) + ByteVector(256, 33) + repeat(32, number(0.5f)) +
                      repeat(32, number(1.0f)) + words(32, 3) + zeros(128) + ByteVector(128, 44) + zeros(128));
}

TEST(LayerParameters, HundredTwentyEightOutputs) {
  expect_chunk(layer(convolution(128, 4), ByteVector(256, 33) + ByteVector(256, 44), std::nullopt),
               ByteVector(256, 33) + ByteVector(256, 44));
}

// 2x2 kernel, 16 inputs: weight = 64 * word + 16 * (2 ky + kx) + lane, so that each line says which one it is.
class LoopOrders : public ::testing::Test {
 protected:
  static ByteVector line(std::uint8_t value) {  // of one output channel; the other three cells are padding
    return ByteVector{value, static_cast<std::uint8_t>(value + 1), static_cast<std::uint8_t>(value + 2),
                      static_cast<std::uint8_t>(value + 3)} +
           repeat(3, kPad);
  }
  static LayerParameters kernel_layer(LoopOrder order) {
    LayerParameters l = layer(convolution(1, 16, 2, 2), {});
    l.order = order;
    for (int position = 0; position < 4; ++position) {
      for (int input = 0; input < 16; ++input) {
        l.weights.push_back(static_cast<std::uint8_t>(64 * (input / 4) + 16 * position + input % 4));
      }
    }
    return l;
  }
  static void expect_lines(LoopOrder order, const std::vector<std::uint8_t>& values) {
    ByteVector expected;
    for (const std::uint8_t value : values) expected = expected + line(value);
    expect_chunk(kernel_layer(order), expected);
  }
};

TEST_F(LoopOrders, KernelFirst) {
  expect_lines(LoopOrder::kernel_first(), {0, 64, 128, 192, 16, 80, 144, 208, 32, 96, 160, 224, 48, 112, 176, 240});
}
TEST_F(LoopOrders, ChannelsFirst) {
  expect_lines(LoopOrder::channels_first(), {0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240});
}
TEST_F(LoopOrders, BlocksOfTwoWords) {
  expect_lines(LoopOrder{2}, {0, 64, 16, 80, 32, 96, 48, 112, 128, 192, 144, 208, 160, 224, 176, 240});
}
TEST_F(LoopOrders, LastBlockMayBeShorter) {
  expect_lines(LoopOrder{3}, {0, 64, 128, 16, 80, 144, 32, 96, 160, 48, 112, 176, 192, 208, 224, 240});
}

TEST(LayerParameters, DepthwiseStandsOnTheDiagonal) {
  LayerParameters l = layer(depthwise(4, 1, 2), {1, 2, 3, 4, 5, 6, 7, 8}, 100);
  l.biases = {10, 20, 30, 40};
  const ByteVector matrix0 = {1, 100, 100, 100, 100, 2, 100, 100, 100, 100, 3, 100, 100, 100, 100, 4};
  const ByteVector matrix1 = {5, 100, 100, 100, 100, 6, 100, 100, 100, 100, 7, 100, 100, 100, 100, 8};
  expect_chunk(l, word(10) + word(20) + word(30) + word(40) + matrix0 + matrix1 + zeros(16));
}

TEST(LayerParameters, DepthwiseGroupsCarryTheirOwnHeaders) {
  LayerParameters l = layer(depthwise(8, 1, 1), {1, 2, 3, 4, 5, 6, 7, 8}, 0);
  l.multipliers = {1, 2, 3, 4, 5, 6, 7, 8};
  l.has_zero_points = true;
  const ByteVector first = number(1) + number(2) + number(3) + number(4) + words(4, 0) +
                           ByteVector{1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4};
  const ByteVector second = number(5) + number(6) + number(7) + number(8) + words(4, 0) +
                            ByteVector{5, 0, 0, 0, 0, 6, 0, 0, 0, 0, 7, 0, 0, 0, 0, 8};
  expect_chunk(l, first + second + zeros(32));
}

TEST(LayerParameters, DepthwisePadsItsLastGroup) {
  LayerParameters l = layer(depthwise(5, 1, 1), {1, 2, 3, 4, 5}, 9);
  l.multipliers = {1, 2, 3, 4, 5};
  const ByteVector first =
      number(1) + number(2) + number(3) + number(4) + ByteVector{1, 9, 9, 9, 9, 2, 9, 9, 9, 9, 3, 9, 9, 9, 9, 4};
  const ByteVector second = number(5) + repeat(3, number(1)) + ByteVector{5} + ByteVector(15, 9);
  expect_chunk(l, first + second);
}

// ---- Refusals ----

TEST(LayerParameters, NonsenseShapesAreRefused) {
  EXPECT_FALSE(validate(convolution(0, 1)).ok());
  EXPECT_FALSE(validate(convolution(1, -1)).ok());
  EXPECT_FALSE(validate(convolution(1, 1, 0, 1)).ok());
  EXPECT_FALSE(validate(convolution(1 << 20, 1 << 20)).ok());
  EXPECT_FALSE(validate(convolution(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX)).ok());
  EXPECT_FALSE(validate({LayerKind::kDepthwise, 3, 3, 4, 8}).ok());
  EXPECT_FALSE(validate({LayerKind::kFullyConnected, 3, 3, 4, 8}).ok());
  EXPECT_FALSE(validate({LayerKind::kConvolution, 1, 1, 4, 8, 4}).ok());    // fewer cells than outputs
  EXPECT_FALSE(validate({LayerKind::kConvolution, 1, 1, 4, 8, 10}).ok());   // not a multiple of 4
  EXPECT_FALSE(validate({LayerKind::kConvolution, 1, 1, 4, 65, 64}).ok());  // several groups
  EXPECT_FALSE(packed_size(convolution(0, 1), {}).ok());
}

TEST(LayerParameters, ContentsMustFitTheShape) {
  EXPECT_FALSE(pack(layer(convolution(2, 3), ByteVector(5))).ok());
  LayerParameters l = layer(convolution(2, 3), ByteVector(6));
  l.biases = {1};
  EXPECT_FALSE(pack(l).ok());
  l.biases.clear();
  l.multipliers = {1, 2, 3};
  EXPECT_FALSE(pack(l).ok());
  l.multipliers.clear();
  l.weight_zero_point.reset();
  EXPECT_FALSE(pack(l).ok());  // the padding needs it
  l.weight_zero_point = 0;
  l.order = LoopOrder{-1};
  EXPECT_FALSE(pack(l).ok());
  LayerParameters d = layer(depthwise(4, 1, 1), ByteVector(4));
  d.order = LoopOrder::channels_first();
  EXPECT_FALSE(pack(d).ok());
}

TEST(LayerParameters, DamagedChunksAreReported) {
  const LayerParameters l = layer(convolution(1, 3), {1, 2, 3});
  const ByteVector chunk = *pack(l);
  const auto damaged = [&](std::size_t offset, std::uint8_t value) {
    ByteVector copy = chunk;
    copy[offset] = value;
    return unpack(copy, l.shape, {}, {});
  };
  EXPECT_TRUE(damaged(0, 99).ok());   // a weight
  EXPECT_FALSE(damaged(3, 99).ok());  // the fourth input channel
  EXPECT_FALSE(damaged(5, 99).ok());  // the second output channel
  const auto tail = damaged(63, 1);   // behind the layer
  ASSERT_FALSE(tail.ok());
  EXPECT_NE(tail.status().message().find("byte 63 "), std::string::npos) << tail.status().message();
  EXPECT_FALSE(unpack(std::span(chunk).first(32), l.shape, {}, {}).ok());
  EXPECT_FALSE(unpack(chunk + zeros(64), l.shape, {}, {}).ok());
  EXPECT_FALSE(unpack(chunk, l.shape, {}, {}, 8).ok());  // another zero point than the padding's
  EXPECT_TRUE(unpack(chunk, l.shape, {}, {}, kZero).ok());
}

TEST(LayerParameters, ZeroPointArrayMustAgree) {
  LayerParameters l = layer(convolution(16, 4), ByteVector(64), 3);
  l.has_zero_points = true;
  ByteVector chunk = *pack(l);
  chunk[4] = 4;  // the second channel's
  EXPECT_FALSE(unpack(chunk, l.shape, l.presence(), {}).ok());
}

// ---- Any layer ----

LayerParameters random_layer(std::mt19937& random) {
  const auto up_to = [&](int limit) { return static_cast<std::int32_t>(random() % static_cast<unsigned>(limit)); };
  LayerParameters l;
  const int kind = up_to(3);
  const std::int32_t height = 1 + up_to(3), width = 1 + up_to(3);
  if (kind == 0) {
    l.shape = convolution(1 + up_to(140), 1 + up_to(20), height, width);
    l.order = LoopOrder{up_to(6)};
  } else if (kind == 1) {
    l.shape = depthwise(1 + up_to(30), height, width);
  } else {
    l.shape = fully_connected(1 + up_to(140), 1 + up_to(50));
  }
  const auto outputs = static_cast<std::size_t>(l.shape.output_channels);
  const std::size_t inputs = kind == 1 ? 1 : static_cast<std::size_t>(l.shape.input_channels);
  l.weights.resize(outputs * inputs * static_cast<std::size_t>(l.shape.kernel_height * l.shape.kernel_width));
  for (std::uint8_t& weight : l.weights) weight = static_cast<std::uint8_t>(random());
  l.weight_zero_point = static_cast<std::uint8_t>(random());
  l.has_zero_points = up_to(2) == 1;
  if (up_to(2) == 1) {
    l.biases.resize(outputs);
    for (std::int32_t& bias : l.biases) bias = static_cast<std::int32_t>(random());
  }
  if (up_to(2) == 1) {
    l.multipliers.resize(outputs);
    for (float& m : l.multipliers) m = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0xff7fffffu);
  }
  return l;
}

TEST(LayerParameters, RandomLayersSurviveTheRoundTrip) {
  std::mt19937 random(20);
  for (int i = 0; i < 300; ++i) {
    const LayerParameters l = random_layer(random);
    const auto chunk = pack(l);
    ASSERT_TRUE(chunk.ok()) << chunk.status().message();
    ASSERT_EQ(chunk->size() % kChunkAlignment, 0u);
    const auto back = unpack(*chunk, l.shape, l.presence(), l.order, l.weight_zero_point);
    ASSERT_TRUE(back.ok()) << back.status().message();
    expect_equal(*back, l);
    EXPECT_EQ(back->weight_zero_point, l.weight_zero_point);
  }
}

TEST(LayerParameters, UnpackThenPackIsTheIdentityOrAnError) {
  std::mt19937 random(21);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    const LayerParameters l = random_layer(random);
    ByteVector chunk = *pack(l);
    chunk[random() % chunk.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    const auto back = unpack(chunk, l.shape, l.presence(), l.order);
    (back.ok() ? accepted : refused) += 1;
    if (!back.ok()) continue;
    const auto again = pack(*back);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, chunk);
  }
  EXPECT_GT(accepted, 30);
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace reef::darwinn
