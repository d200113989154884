// SPDX-License-Identifier: Apache-2.0
// How the output of a convolution with packed weights (kernels/matmul/*_panels.h) is shared out among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv_shape.h"
#include "ops/op_context.h"

namespace reef::ops {

// Sizes of the blocks. No output depends on them: each is computed within one.
struct PanelBlocks {
  std::int64_t pixels = 1, panels = 1;              // of one block
  std::int64_t pixel_blocks = 0, panel_blocks = 0;  // how many there are, per group
};

// How many products make a block: a few blocks for each thread, none of less than `least` (some microseconds), and none
// that a time limit could not stop soon.
inline double block_products(const OpContext& ctx, const kernels::ConvShape& s, double least) {
  constexpr double kMost = 32e6;
  constexpr int kBlocksPerThread = 6;
  const int threads = ctx.environment()->threads().threads();
  if (threads == 1) return kMost;
  const double all =
      static_cast<double>(s.output_pixels()) * static_cast<double>(s.depth()) * static_cast<double>(s.output_channels);
  return std::clamp(all / (kBlocksPerThread * threads), least, kMost);
}

// `products`: how many make a block; `pixel_step`: pixels a kernel likes to have together.
inline PanelBlocks panel_blocks(const kernels::ConvShape& s, std::int64_t panel_columns, std::int64_t panels,
                                double products, std::int64_t pixel_step) {
  const double depth = static_cast<double>(std::max<std::int64_t>(s.depth(), 1));
  const double wanted = std::min(products / (depth * static_cast<double>(s.group_outputs())), 1e9);
  PanelBlocks result;
  const std::int64_t most = std::max<std::int64_t>(static_cast<std::int64_t>(wanted) / pixel_step, 1) * pixel_step;
  // All of one size, as far as steps allow: threads that share them end together.
  const std::int64_t pixels = std::max<std::int64_t>(s.output_pixels(), 1), blocks = (pixels + most - 1) / most;
  result.pixels = ((pixels + blocks - 1) / blocks + pixel_step - 1) / pixel_step * pixel_step;
  result.pixel_blocks = (s.output_pixels() + result.pixels - 1) / result.pixels;
  // Few pixels, many products each: panels are shared out as well.
  const double per_panel = static_cast<double>(std::min(result.pixels, s.output_pixels())) * depth *
                           static_cast<double>(std::min(panel_columns, s.group_outputs()));
  result.panels = std::max<std::int64_t>(static_cast<std::int64_t>(products / per_panel), 1);
  result.panel_blocks = (panels + result.panels - 1) / result.panels;
  return result;
}

// body(group, pixel_begin, pixel_end, panel_begin, panel_end) for the whole output, on all threads.
template <typename Body>
void for_each_panel_block(const RunContext& ctx, const kernels::ConvShape& s, std::int64_t panels,
                          const PanelBlocks& blocks, const Body& body) {
  const std::int64_t count = s.groups * blocks.pixel_blocks * blocks.panel_blocks;
  if (count == 1) return body(0, 0, s.output_pixels(), 0, panels);  // small layers: every nanosecond counts
  ctx.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t panel = i % blocks.panel_blocks * blocks.panels;
      const std::int64_t pixel = i / blocks.panel_blocks % blocks.pixel_blocks * blocks.pixels;
      body(i / blocks.panel_blocks / blocks.pixel_blocks, pixel, std::min(pixel + blocks.pixels, s.output_pixels()),
           panel, std::min(panel + blocks.panels, panels));
    }
  });
}

}  // namespace reef::ops
