// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/loop_order.h"

#include <algorithm>

namespace reef::darwinn {
namespace {

constexpr std::int64_t kMaxBlockLines = 13;
constexpr std::int64_t kTieLines = 32;
constexpr std::int64_t kGridSide = 4;  // tiles along each side

std::int64_t kernel_positions(const LayerShape& shape) {
  return std::int64_t{shape.kernel_height} * shape.kernel_width;
}

std::int64_t input_words(const LayerShape& shape) {
  return (std::int64_t{shape.input_channels} + kInputChannelsPerWord - 1) / kInputChannelsPerWord;
}

}  // namespace

std::int32_t partial_sum_block_words(const LayerShape& shape) {
  const std::int64_t words = input_words(shape);
  for (std::int64_t divisor = std::min(words, kMaxBlockLines / kernel_positions(shape)); divisor > 1; --divisor) {
    if (words % divisor == 0) return static_cast<std::int32_t>(divisor);
  }
  return 1;
}

LoopOrder compiler_loop_order(const LayerShape& shape, std::int64_t pixels_per_tile) {
  if (shape.kind != LayerKind::kConvolution || kernel_positions(shape) == 1) return LoopOrder::kernel_first();
  const std::int64_t lines = kernel_positions(shape) * input_words(shape);
  const std::int32_t block_words = partial_sum_block_words(shape);
  const std::int64_t moved = pixels_per_tile + 2 * kernel_positions(shape) * block_words;
  const bool partial_sums = moved < 2 * lines || (moved == 2 * lines && lines >= kTieLines);
  if (!partial_sums || block_words == input_words(shape)) return LoopOrder::kernel_first();
  return LoopOrder{block_words};
}

std::int64_t pixels_per_tile(std::int32_t output_height, std::int32_t output_width) {
  const auto share = [](std::int64_t size) { return (size + kGridSide - 1) / kGridSide; };
  return share(output_height) * share(output_width);
}

}  // namespace reef::darwinn
