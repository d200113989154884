// SPDX-License-Identifier: Apache-2.0
// Choices as found in packages of the model collection; the layer's operator is named beside each.
#include "formats/darwinn/parameters/loop_order.h"

#include <gtest/gtest.h>

namespace reef::darwinn {
namespace {

LoopOrder choose(LayerShape shape, std::int32_t height, std::int32_t width) {
  return compiler_loop_order(shape, pixels_per_tile(height, width));
}
LayerShape kernel(std::int32_t size, std::int32_t channels) {
  return {LayerKind::kConvolution, size, size, channels, channels};
}

TEST(LoopOrder, AsGooglesCompilersChose) {
  EXPECT_EQ(choose(kernel(2, 32), 20, 11), LoopOrder{2});                 // asr_tflite_model_ASR_Model, op 1
  EXPECT_EQ(choose(kernel(2, 32), 10, 5), LoopOrder{2});                  // the same, op 5
  EXPECT_EQ(choose(kernel(3, 32), 12, 128), LoopOrder{1});                // conv_k3_p32_anchor
  EXPECT_EQ(choose(kernel(3, 32), 12, 184), LoopOrder::kernel_first());   // conv_k3_p32_targets
  EXPECT_EQ(choose(kernel(3, 64), 12, 184), LoopOrder{1});                // conv_k3_p64_targets
  EXPECT_EQ(choose(kernel(7, 32), 128, 128), LoopOrder::kernel_first());  // op_model_conv, ops 2..10
}

TEST(LoopOrder, TiesGoToPartialSumsFromThirtyTwoLinesOn) {
  const LayerShape large = kernel(2, 32);  // 32 lines, blocks of 8
  EXPECT_EQ(compiler_loop_order(large, 2 * 32 - 2 * 8 - 1), LoopOrder{2});
  EXPECT_EQ(compiler_loop_order(large, 2 * 32 - 2 * 8), LoopOrder{2});
  EXPECT_EQ(compiler_loop_order(large, 2 * 32 - 2 * 8 + 1), LoopOrder::kernel_first());
  const LayerShape small = kernel(2, 16);  // 16 lines, blocks of 8
  EXPECT_EQ(compiler_loop_order(small, 2 * 16 - 2 * 8 - 1), LoopOrder{2});
  EXPECT_EQ(compiler_loop_order(small, 2 * 16 - 2 * 8), LoopOrder::kernel_first());
}

TEST(LoopOrder, BlocksDivideTheInputs) {
  EXPECT_EQ(partial_sum_block_words(kernel(1, 64)), 8);  // 16 words; 13 lines at most
  EXPECT_EQ(partial_sum_block_words(kernel(2, 20)), 1);  // 5 words
  EXPECT_EQ(partial_sum_block_words(kernel(2, 12)), 3);
  EXPECT_EQ(partial_sum_block_words(kernel(3, 12)), 1);
  EXPECT_EQ(partial_sum_block_words(kernel(11, 12)), 1);  // even one word is more than 13 lines
}

TEST(LoopOrder, OnlyKernelsOfConvolutionsHaveAnOrder) {
  EXPECT_EQ(compiler_loop_order(kernel(1, 512), 1), LoopOrder::kernel_first());
  EXPECT_EQ(compiler_loop_order({LayerKind::kDepthwise, 3, 3, 512, 512}, 1), LoopOrder::kernel_first());
  EXPECT_EQ(compiler_loop_order(kernel(3, 4), 1), LoopOrder::kernel_first());  // one word: one block
}

TEST(LoopOrder, TilesShareRoundedUp) {
  EXPECT_EQ(pixels_per_tile(12, 184), 3 * 46);
  EXPECT_EQ(pixels_per_tile(1, 1), 1);
  EXPECT_EQ(pixels_per_tile(5, 6), 2 * 2);
}

}  // namespace
}  // namespace reef::darwinn
