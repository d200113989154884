// SPDX-License-Identifier: Apache-2.0
// How outputs of convolutions are shared out among threads. No output depends on it: each is computed within one part.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv_shape.h"
#include "ops/op_context.h"

namespace reef::ops {

// How many parts make `products` of work: a few for each thread and as many for one as for another, of about `least`
// products (some microseconds) at least, and none that a time limit could not stop soon.
inline std::int64_t parts_of(const OpContext& ctx, double products, double least) {
  constexpr double kMost = 32e6;  // products
  constexpr std::int64_t kPartsPerThread = 4;
  const std::int64_t threads = ctx.environment()->threads().threads();
  const auto fewest = static_cast<std::int64_t>(std::min(products / kMost, 1e6)) + 1;
  if (threads == 1) return fewest;
  const auto worthwhile = static_cast<std::int64_t>(std::min(products / least + 0.5, 1e6));
  if (worthwhile < threads) return fewest;
  return std::max(std::min(worthwhile / threads, kPartsPerThread), (fewest + threads - 1) / threads) * threads;
}

// Where part `i` of `parts` of [0, count) begins: at multiples of `step`, as even as these allow.
inline std::int64_t part_begin(std::int64_t i, std::int64_t parts, std::int64_t count, std::int64_t step = 1) {
  return i == parts ? count : (i * count / parts + step / 2) / step * step;
}

// Parts of `count` rows, of which a kernel likes to have `step` together, that are `products` of work each.
inline std::int64_t parts_of_rows(const OpContext& ctx, std::int64_t count, double products, double least,
                                  std::int64_t step) {
  const std::int64_t threads = ctx.environment()->threads().threads();
  const std::int64_t most = std::max<std::int64_t>((count + step / 2) / step, 1);
  const std::int64_t parts = std::min(parts_of(ctx, products * static_cast<double>(count), least), most);
  return parts > threads ? parts / threads * threads : parts;
}

struct PanelBlocks {
  std::int64_t pixel_blocks = 0, panel_blocks = 0;  // per group
  std::int64_t pixel_step = 1;                      // pixels a kernel likes to have together
};

// Of a convolution with packed weights (kernels/matmul/*_panels.h). By pixels as far as there are enough of them: then
// threads read what they wrote in the layer before. Few pixels, many products each: panels are shared out as well.
inline PanelBlocks panel_blocks(const OpContext& ctx, const kernels::ConvShape& s, std::int64_t panels, double least,
                                std::int64_t pixel_step) {
  const double each = static_cast<double>(s.depth()) * static_cast<double>(s.group_outputs());  // products of a pixel
  PanelBlocks result;
  result.pixel_step = pixel_step;
  result.pixel_blocks = parts_of_rows(ctx, s.output_pixels(), each, least, pixel_step);
  const std::int64_t parts = parts_of(ctx, each * static_cast<double>(s.output_pixels()), least);
  result.panel_blocks = std::min((parts + result.pixel_blocks - 1) / result.pixel_blocks, panels);
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
      const std::int64_t panel = i % blocks.panel_blocks, pixel = i / blocks.panel_blocks % blocks.pixel_blocks;
      const auto pixel_at = [&](std::int64_t block) {
        return part_begin(block, blocks.pixel_blocks, s.output_pixels(), blocks.pixel_step);
      };
      body(i / blocks.panel_blocks / blocks.pixel_blocks, pixel_at(pixel), pixel_at(pixel + 1),
           part_begin(panel, blocks.panel_blocks, panels), part_begin(panel + 1, blocks.panel_blocks, panels));
    }
  });
}

}  // namespace reef::ops
