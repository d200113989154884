// SPDX-License-Identifier: Apache-2.0
// Split weights add up to the weights, and what is added up in 16 bits fits, whatever the activations are.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conv/random_conv.h"
#include "kernels/matmul/byte_split.h"

namespace reef::kernels {
namespace {

struct Case {
  std::int64_t columns, lines, line_depth, block_steps;
  std::vector<std::int16_t> weights;  // [column][line][line_depth]

  std::int64_t steps() const { return (line_depth + kSplitGroup - 1) / kSplitGroup; }
};

Case random_case(std::mt19937& random) {
  Case c{pick(random, 1, 16), pick(random, 1, 3), pick(random, 1, 70), pick(random, 1, 8), {}};
  const std::int64_t spread = pick(random, 0, 1) == 0 ? pick(random, 0, 40) : 255;
  for (std::int64_t i = 0; i < c.columns * c.lines * c.line_depth; ++i) {
    const bool is_extreme = pick(random, 0, 30) == 0;
    const std::int64_t extremes[] = {-255, -129, -128, -127, 127, 128, 129, 255};
    c.weights.push_back(
        static_cast<std::int16_t>(is_extreme ? extremes[pick(random, 0, 7)] : pick(random, -spread, spread)));
  }
  return c;
}

// Weights of one sign times 255 in 16 bits.
void expect_to_fit(const std::vector<std::int8_t>& together) {
  int positive = 0, negative = 0;
  for (const std::int8_t w : together) (w > 0 ? positive : negative) += w;
  EXPECT_LE(255 * positive, 32767);
  EXPECT_GE(255 * negative, -32768);
}

TEST(ByteSplit, AddsUpAndFits) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Case c = random_case(random);
    const SplitPanel panel = split_panel(c.weights.data(), c.columns, c.lines, c.line_depth, c.block_steps);
    std::vector<int> sums(static_cast<std::size_t>(c.lines * c.steps() * c.columns * kSplitGroup));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = panel.values[i];
    for (std::size_t e = 0; e < panel.extra_steps.size(); ++e) {
      for (std::int64_t i = 0; i < c.columns * kSplitGroup; ++i) {
        const std::int64_t step = panel.extra_steps[e].line * c.steps() + panel.extra_steps[e].step;
        const std::size_t at = e * static_cast<std::size_t>(c.columns * kSplitGroup) + static_cast<std::size_t>(i);
        sums[static_cast<std::size_t>(step * c.columns * kSplitGroup + i)] += panel.extra_values[at];
        if (i % 2 == 0) expect_to_fit({panel.extra_values[at], panel.extra_values[at + 1]});
      }
    }
    for (std::int64_t column = 0; column < c.columns; ++column) {
      for (std::int64_t line = 0; line < c.lines; ++line) {
        std::vector<std::int8_t> block;
        for (std::int64_t k = 0; k < c.line_depth; ++k) {
          const auto at = static_cast<std::size_t>(
              ((line * c.steps() + k / kSplitGroup) * c.columns + column) * kSplitGroup + k % kSplitGroup);
          EXPECT_EQ(sums[at], c.weights[static_cast<std::size_t>((column * c.lines + line) * c.line_depth + k)]);
          if (k % (c.block_steps * kSplitGroup) == 0) block.clear();
          block.push_back(panel.values[at]);
          expect_to_fit(block);
        }
      }
    }
  }
}

}  // namespace
}  // namespace reef::kernels
