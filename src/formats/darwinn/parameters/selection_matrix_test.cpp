// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/selection_matrix.h"

#include <gtest/gtest.h>

#include <random>

namespace reef::darwinn {
namespace {

std::vector<std::uint8_t> packed(const SelectionMatrix& selection) {
  const auto layer = selection_layer(selection);
  EXPECT_TRUE(layer.ok()) << layer.status().message();
  const auto chunk = pack(*layer);
  EXPECT_TRUE(chunk.ok()) << chunk.status().message();
  return *chunk;
}

// As in looming_64x64_3x3 (RESHAPE of 9 values): a row of zero biases, then word j gives output j.
TEST(SelectionMatrix, GatherByHand) {
  std::vector<std::uint8_t> expected(10 * 64);
  for (std::size_t j = 0; j < 9; ++j) expected[64 * (j + 1) + 4 * j] = 1;
  EXPECT_EQ(packed(SelectionMatrix::gather(9, true)), expected);
}

// As in split_concat: byte 1 of a word; and bytes 0 and 5 side by side.
TEST(SelectionMatrix, PicksByHand) {
  std::vector<std::uint8_t> expected(64);
  expected[16 + 1] = 1;
  EXPECT_EQ(packed({LayerKind::kConvolution, 4, {1}, true}), expected);
  std::fill(expected.begin(), expected.end(), 0);
  expected[16] = expected[37] = 1;
  EXPECT_EQ(packed({LayerKind::kConvolution, 8, {0, 5}, true}), expected);
}

TEST(SelectionMatrix, SpreadByHand) {
  std::vector<std::uint8_t> expected(64 + 64);  // 3 inputs: 12 outputs of 16 cells
  expected[64 + 0] = expected[64 + 16 + 1] = expected[64 + 32 + 2] = 1;
  EXPECT_EQ(packed(SelectionMatrix::spread(3, true)), expected);
}

TEST(SelectionMatrix, NonsenseIsRefused) {
  EXPECT_FALSE(selection_layer({LayerKind::kFullyConnected, 4, {4}, false}).ok());
  EXPECT_FALSE(selection_layer({LayerKind::kFullyConnected, 4, {-2}, false}).ok());
  EXPECT_FALSE(selection_layer({LayerKind::kFullyConnected, 4, {}, false}).ok());
  EXPECT_FALSE(selection_layer({LayerKind::kFullyConnected, 0, {0}, false}).ok());
  EXPECT_FALSE(selection_layer({LayerKind::kDepthwise, 4, {0}, false}).ok());
  EXPECT_FALSE(selection_layer(SelectionMatrix::align(5000, false)).ok());
}

void expect_found(const SelectionMatrix& selection) {
  const std::vector<std::uint8_t> chunk = packed(selection);
  std::vector<std::uint8_t> blob(64, 0x55);  // something before and after
  blob.insert(blob.end(), chunk.begin(), chunk.end());
  blob.insert(blob.end(), 64, 0x55);
  const auto found = SelectionFinder(blob).longest_at(64);
  ASSERT_TRUE(found.has_value()) << describe(selection);
  EXPECT_EQ(found->size, chunk.size()) << describe(selection);
  EXPECT_EQ(packed(found->selection), chunk) << describe(selection);
  EXPECT_FALSE(SelectionFinder(blob).longest_at(0).has_value());
  EXPECT_FALSE(SelectionFinder(blob).longest_at(32).has_value());
  EXPECT_FALSE(SelectionFinder(blob).longest_at(blob.size()).has_value());
}

TEST(SelectionMatrix, AllKindsAreFound) {
  for (const bool biases : {false, true}) {
    for (const std::int32_t count : {1, 2, 3, 4, 5, 9, 16, 17, 28, 63, 64, 65, 100}) {
      expect_found(SelectionMatrix::gather(count, biases));
      expect_found(SelectionMatrix::gather(count, biases, LayerKind::kConvolution));
      expect_found(SelectionMatrix::spread(count, biases));
      expect_found(SelectionMatrix::align(count, biases));
    }
    expect_found({LayerKind::kConvolution, 4, {3}, biases});
    expect_found({LayerKind::kConvolution, 8, {1, 2, 6}, biases});
    expect_found({LayerKind::kFullyConnected, 12, {0, 1, 2, 4, 8, 9}, biases});
  }
}

TEST(SelectionMatrix, OtherBytesAreNotFound) {
  std::vector<std::uint8_t> blob = packed(SelectionMatrix::gather(9, true));
  blob[blob.size() - 1] = 1;  // a second one in the last line
  const auto found = SelectionFinder(blob).longest_at(0);
  EXPECT_TRUE(!found || found->size < blob.size());
  EXPECT_FALSE(SelectionFinder(std::vector<std::uint8_t>(6400, 0)).longest_at(0).has_value());
  EXPECT_FALSE(SelectionFinder(std::vector<std::uint8_t>(6400, 1)).longest_at(0).has_value());
  EXPECT_FALSE(SelectionFinder({}).longest_at(0).has_value());
}

TEST(SelectionMatrix, WhatIsFoundHasExactlyTheseBytes) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint8_t> blob(64 * (1 + random() % 20));
    for (unsigned ones = random() % 6; ones > 0; --ones) blob[random() % blob.size()] = 1;
    const SelectionFinder finder(blob);
    for (std::size_t offset = 0; offset < blob.size(); offset += 64) {
      const auto found = finder.longest_at(offset);
      if (!found) continue;
      ASSERT_LE(offset + found->size, blob.size());
      const auto first = blob.begin() + static_cast<std::ptrdiff_t>(offset);
      EXPECT_EQ(packed(found->selection),
                std::vector<std::uint8_t>(first, first + static_cast<std::ptrdiff_t>(found->size)));
    }
  }
}

TEST(SelectionMatrix, Words) {
  EXPECT_EQ(describe(SelectionMatrix::gather(16, true)), "gather 16 (64 -> 16, zero biases)");
  EXPECT_EQ(describe(SelectionMatrix::spread(28, true)), "spread 28 (28 -> 112, zero biases)");
  EXPECT_EQ(describe(SelectionMatrix::align(28, false)), "align 28 (112 -> 112)");
  EXPECT_EQ(describe({LayerKind::kConvolution, 8, {0, 5}, true}), "gather 2 of inputs 0, 5 (8 -> 2, zero biases)");
}

}  // namespace
}  // namespace reef::darwinn
