// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/softmax_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>

#include "formats/darwinn/parameters/little_endian.h"

namespace reef::darwinn {
namespace {

std::vector<std::uint32_t> first_words(const std::vector<std::uint8_t>& chunk, std::size_t row) {
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < 5; ++i) words.push_back(load_u32(chunk, static_cast<std::int64_t>(64 * row + 4 * i)));
  return words;
}

TEST(SoftmaxRows, FiveClasses) {
  const auto chunk = pack_softmax_rows({5, 0.125f, false});
  ASSERT_TRUE(chunk.ok());
  ASSERT_EQ(chunk->size(), 6u * 64);
  const std::uint32_t low = 0x80000000u, scale = std::bit_cast<std::uint32_t>(0.125f),
                      huge = std::bit_cast<std::uint32_t>(0.125f * FLT_MAX);
  const std::vector<std::vector<std::uint32_t>> expected = {
      {0, 0, 0, 0, 0},       {0, low, low, low, 0},           {0, 0, 0, 0, 0},
      {0, low, low, low, 0}, {scale, scale, scale, scale, 0}, {scale, huge, huge, huge, 0}};
  for (std::size_t row = 0; row < 6; ++row) EXPECT_EQ(first_words(*chunk, row), expected[row]) << row;
}

TEST(SoftmaxRows, MaskRowHoldsOneOne) {
  const auto chunk = pack_softmax_rows({3, 0.5f, true});
  ASSERT_TRUE(chunk.ok());
  ASSERT_EQ(chunk->size(), 4u * 64);
  EXPECT_EQ(first_words(*chunk, 3), (std::vector<std::uint32_t>{0x3f800000u, 0, 0, 0, 0}));
}

TEST(SoftmaxRows, RoundTrip) {
  for (std::int32_t classes = 1; classes <= 40; ++classes) {
    for (const bool mask : {false, true}) {
      const SoftmaxRows softmax{classes, 0.0123f * static_cast<float>(classes), mask};
      const auto chunk = pack_softmax_rows(softmax);
      ASSERT_TRUE(chunk.ok());
      const auto back = unpack_softmax_rows(*chunk);
      ASSERT_TRUE(back.ok()) << back.status().message();
      EXPECT_EQ(*back, softmax);
    }
  }
}

TEST(SoftmaxRows, DamageIsReported) {
  const std::vector<std::uint8_t> good = *pack_softmax_rows({10, 0.5f, false});
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<std::uint8_t> chunk = good;
    chunk[i] ^= 0x40;
    const auto back = unpack_softmax_rows(chunk);
    if (!back.ok()) continue;
    EXPECT_EQ(*pack_softmax_rows(*back), chunk) << i;
  }
  EXPECT_FALSE(unpack_softmax_rows({}).ok());
  EXPECT_FALSE(unpack_softmax_rows(std::span(good).first(2 * 64)).ok());
  EXPECT_FALSE(unpack_softmax_rows(std::span(good).first(100)).ok());
  EXPECT_FALSE(unpack_softmax_rows(std::vector<std::uint8_t>(9 * 64, 3)).ok());
  EXPECT_FALSE(pack_softmax_rows({0, 0.5f, false}).ok());
  EXPECT_FALSE(pack_softmax_rows({INT32_MAX, 0.5f, false}).ok());
}

TEST(SoftmaxRows, OfAnOperator) {
  ir::Subgraph graph;
  graph.tensors.resize(2);
  graph.tensors[0].type = ir::DataType::kInt8;
  graph.tensors[0].shape = {1, 10};
  graph.tensors[0].quantization.scale = {0.25f};
  ir::Operator op;
  op.type = "SOFTMAX";
  op.inputs = {0};
  op.outputs = {1};
  const auto rows = softmax_rows_of(graph, op);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(*rows, (SoftmaxRows{10, 0.25f, false}));
  graph.tensors[0].shape = {1, 16};
  EXPECT_FALSE(softmax_rows_of(graph, op).ok());  // whole words: nothing is stored
  graph.tensors[0].type = ir::DataType::kFloat32;
  EXPECT_FALSE(softmax_rows_of(graph, op).ok());
  op.type = "LOGISTIC";
  EXPECT_FALSE(softmax_rows_of(graph, op).ok());
}

}  // namespace
}  // namespace reef::darwinn
