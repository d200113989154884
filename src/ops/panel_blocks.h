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
inline std::int64_t parts_of(std::int64_t threads, double products, double least) {
  constexpr double kMost = 32e6;  // products
  constexpr std::int64_t kPartsPerThread = 4;
  const auto fewest = static_cast<std::int64_t>(std::min(products / kMost, 1e6)) + 1;
  if (threads == 1) return fewest;
  const auto worthwhile = static_cast<std::int64_t>(std::min(products / least + 0.5, 1e6));
  if (worthwhile < threads) return std::max(worthwhile, fewest);  // some threads have nothing to do
  return std::max(std::min(worthwhile / threads, kPartsPerThread), (fewest + threads - 1) / threads) * threads;
}

// Where part `i` of `parts` of [0, count) begins: at multiples of `step`, as even as these allow.
inline std::int64_t part_begin(std::int64_t i, std::int64_t parts, std::int64_t count, std::int64_t step = 1) {
  return i == parts ? count : (i * count / parts + step / 2) / step * step;
}

// Parts of `count` rows, of which a kernel likes to have `step` together, that are `products` of work each.
inline std::int64_t parts_of_rows(std::int64_t threads, std::int64_t count, double products, double least,
                                  std::int64_t step) {
  const std::int64_t most = std::max<std::int64_t>((count + step / 2) / step, 1);
  const std::int64_t parts = std::min(parts_of(threads, products * static_cast<double>(count), least), most);
  return parts > threads ? parts / threads * threads : parts;
}

// Parts by rows as far as there are enough of them: then threads read what they wrote in the layer before. Few rows,
// many products each: `columns` are shared out as well. Arguments as above.
struct TwoWayParts {
  std::int64_t of_rows = 0, of_columns = 0;
};
inline TwoWayParts two_way_parts(std::int64_t threads, std::int64_t rows, double products, double least,
                                 std::int64_t step, std::int64_t columns) {
  const std::int64_t of_rows = parts_of_rows(threads, rows, products, least, step);
  const std::int64_t all = parts_of(threads, products * static_cast<double>(rows), least);
  return {of_rows, std::min((all + of_rows - 1) / of_rows, columns)};
}

// The blocks of a convolution with packed weights (kernels/matmul/*_panels.h): by pixels, then by panels.
struct PanelBlocks {
  std::int64_t pixel_blocks = 0, panel_blocks = 0;  // per group
  std::int64_t pixel_step = 1;                      // pixels a kernel likes to have together
};
inline PanelBlocks panel_blocks(const OpContext& ctx, const kernels::ConvShape& s, std::int64_t panels, double least,
                                std::int64_t pixel_step) {
  const double each = static_cast<double>(s.depth()) * static_cast<double>(s.group_outputs());  // products of a pixel
  const TwoWayParts parts =
      two_way_parts(ctx.environment()->threads().threads(), s.output_pixels(), each, least, pixel_step, panels);
  return {parts.of_rows, parts.of_columns, pixel_step};
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
