// SPDX-License-Identifier: Apache-2.0
// Weights as signed bytes whose products AVX2 and SSE4 add up exactly in 16 bits.
//
// vpmaddubsw multiplies unsigned by signed bytes and adds two products with saturation: inexact for weights in general,
// but exact if the positive ones of the two add up to at most 128 and the negative ones to at least -128, because 255 *
// 128 < 2^15. Several such results may be added in 16 bits as long as the same holds for all their weights together.
// Weights of networks with one scale for a whole tensor are mostly small, so that this holds for blocks of 8 to 32 of a
// sum's products in nearly all columns; what is too much is left out of the block and added as an extra step of its
// own. All of it is decided when weights are packed; the sums are exact whatever the activations are.
#pragma once

#include <cstdint>
#include <vector>

namespace reef::kernels {

inline constexpr std::int64_t kSplitGroup = 4;  // products of a step per column

// Which four products of a line an extra step adds to.
struct ExtraStep {
  std::int32_t line = 0, step = 0;
};

// A panel's weights, [line][step][column][4], and its extra steps', [extra step][column][4].
struct SplitPanel {
  std::vector<std::int8_t> values, extra_values;
  std::vector<ExtraStep> extra_steps;
};

// weights: [column][line][line_depth], within [-255, 255]. block_steps: steps that are added in 16 bits; blocks do not
// go across lines.
SplitPanel split_panel(const std::int16_t* weights, std::int64_t columns, std::int64_t lines, std::int64_t line_depth,
                       std::int64_t block_steps);

}  // namespace reef::kernels
